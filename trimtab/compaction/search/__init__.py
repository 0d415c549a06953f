"""Which set of nodes goes together, and where does every pod go?

prepare     everything a search needs, read off the world once
promises    room kept for pods that are not there yet
weigh       what each node saves, and in which order nodes are tried
limits      minimum sizes and room that is kept; groups: of node groups; lasts: of zones that something needs
search      which set of nodes goes together; improve: could the set be better? choose: both, over orders
steer       among places that fit, which one do the pods like better?
waves       budgets as one ledger: who goes in which wave
replay      would the plan go through, move by move?
bound       how much could go at all; bounded: of one prepared world
first       only the first wave, for whoever plans again before the second
"""
