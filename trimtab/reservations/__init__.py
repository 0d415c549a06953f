"""How much of a node is reserved for its kubelet, its container runtime and its system, by every vendor's formula or as
measured.

profile       the formula of one vendor: brackets, amounts per pod, minimums, rounding
read_profile  a profile from YAML, with all mistakes, and the profiles that ship with Trimtab
formula       the reservations of a node of a given size by a profile, with each part of the formula
kernel        the memory that a machine's kernel takes before the kubelet sees it
pod_limits    how many pods a node can hold: by network interfaces, by its address range, by the kernel's ARP table
eni_table     the network interfaces of every EC2 instance type, and their addresses
overhead_history,
overhead_fit  what kubelets and runtimes used, and a line through it: the usage without pods, and the usage per pod
encode_history  that history as text, and back
measure       the usage of a pool, the reservation that follows, and whether a change is worth it
reasons       why a reservation stays, changes, or is not known
"""
