# On each host of a slice: gcloud compute tpus tpu-vm ssh train --worker=all --command "$(cat examples/cluster/tpu_vm.sh)"
export JAXOBS_RUN_ID=train JAXOBS_ADDR=0.0.0.0 JAXOBS_EVENT_LOG="$HOME/logs/events-{host}-{pid}.jsonl"
mkdir -p ~/logs
copy() { gcloud storage rsync --recursive ~/logs gs://my-bucket/train; }
while sleep 60; do copy; done &
trap "kill $!; copy" EXIT
jaxobs run train.py
