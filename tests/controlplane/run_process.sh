#!/bin/sh
# run PROCESS [OPTION]...: webhook, compactor, watchdog or recommender of the installation in the test bed, on this machine.
#
# The pods of its Deployments are played: they run nothing. This process has the settings of the Deployment and the token of
# its account, as a pod would have them. For the webhook, the Service is led to this machine, and both webhook configurations
# to its port; the certificate and the caBundle are the installation's own.
set -eu
process=$1
shift
: "${TESTBED:?first: . .testbed/env}"
namespace=${TRIMTAB_NAMESPACE:-trimtab-system}
home=$TESTBED/processes/$process
mkdir -p "$home"

if [ "$process" = webhook ]; then
  port="/clientConfig/service/port\", \"value\": $TESTBED_WEBHOOK_PORT}"
  kubectl -n "$namespace" patch service trimtab-webhook --type=merge -p '{"spec": {"type": "ExternalName", "externalName": "localhost"}}'
  kubectl patch mutatingwebhookconfiguration trimtab --type=json -p "[{\"op\": \"replace\", \"path\": \"/webhooks/0$port]"
  kubectl patch validatingwebhookconfiguration trimtab --type=json \
    -p "[{\"op\": \"replace\", \"path\": \"/webhooks/0$port, {\"op\": \"replace\", \"path\": \"/webhooks/1$port]"
  set -- --listen "127.0.0.1:$TESTBED_WEBHOOK_PORT" --certs "$home/certs" "$@"
else
  set -- --listen 127.0.0.1:0 "$@"
fi

settings=$(kubectl -n "$namespace" set env "deployment/trimtab-$process" --list | grep -v '^#')
token=$(kubectl -n "$namespace" create token "trimtab-$process" --duration=24h)
kubectl config view --raw >"$home/kubeconfig"
export KUBECONFIG="$home/kubeconfig"
kubectl config set-credentials "$process" --token="$token" >/dev/null
kubectl config set-context --current --user="$process" >/dev/null
for setting in $settings; do
  # What the caller set comes first, such as a shorter interval.
  name=${setting%%=*}
  eval "[ -n \"\${$name+set}\" ]" || export "$setting"
done
exec trimtab "$process" "$@"
