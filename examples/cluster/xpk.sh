xpk workload create --cluster mine --workload train --tpu-type v5litepod-16 --num-slices 2 --docker-image example.com/train:1 \
    --env JAXOBS_RUN_ID=train --env JAXOBS_ADDR=0.0.0.0 --env 'JAXOBS_EVENT_LOG=/logs/events-{host}-{pid}.jsonl' \
    --storage logs --command 'jaxobs run train.py'
