{{/* The variable of a provider's key. Pools share rate limits by its name, so each key of a Secret has its own. */}}
{{- define "proctor.apiKeyEnv" -}}
PROVIDER_{{ printf "%s_%s" .secretName (.key | default "api-key") | upper | replace "-" "_" | replace "." "_" }}
{{- end }}

{{/* The pools file, as `docs/operations/pools.md` describes it. */}}
{{- define "proctor.pools" -}}
{{- $pools := list -}}
{{- range .Values.pools }}
{{- $entry := dict "name" .name "engine" .engine "concurrency" (int (.concurrency | default (ternary 256 64 (eq .engine "vllm")))) -}}
{{- if .models }}
{{- $models := list -}}
{{- range .models }}
{{- $model := dict "name" .name -}}
{{- if .path }}{{ $_ := set $model "path" .path }}{{ end -}}
{{- if .lora }}{{ $_ := set $model "lora" .lora }}{{ end -}}
{{- if .base }}{{ $_ := set $model "base" .base }}{{ end -}}
{{- if .engineArgs }}{{ $_ := set $model "engine_args" .engineArgs }}{{ end -}}
{{- if .toolParser }}{{ $_ := set $model "tool_parser" .toolParser }}{{ end -}}
{{- if .reasoningParser }}{{ $_ := set $model "reasoning_parser" .reasoningParser }}{{ end -}}
{{- $models = append $models $model -}}
{{- end }}
{{- $_ := set $entry "models" $models -}}
{{- end }}
{{- with .provider }}
{{- $_ := set $entry "provider" .name -}}
{{- $_ := set $entry "base_url" .baseUrl -}}
{{- with .apiKey }}{{ $_ := set $entry "api_key_env" (include "proctor.apiKeyEnv" .) }}{{ end -}}
{{- if .constrainedField }}{{ $_ := set $entry "constrained_field" .constrainedField }}{{ end -}}
{{- if .maxTokensField }}{{ $_ := set $entry "max_tokens_field" .maxTokensField }}{{ end -}}
{{- end }}
{{- if .scoringMethods }}{{ $_ := set $entry "scoring_methods" .scoringMethods }}{{ end -}}
{{- $pools = append $pools $entry -}}
{{- end }}
{{- toYaml (dict "pools" $pools "aliases" .Values.aliases) -}}
{{- end }}

{{- define "proctor.workerImage" -}}
{{ .image | default (ternary "worker-vllm" "worker" (eq .engine "vllm")) }}
{{- end }}

{{/* A pod of a worker. `pool` is the entry in the values, `who` its labels. */}}
{{- define "proctor.worker" -}}
{{- $p := .pool -}}
{{- $root := .root -}}
{{- $image := include "proctor.workerImage" $p -}}
{{- $drain := int ($p.drainSeconds | default 120) -}}
metadata:
  labels: {{ include "proctor.podLabels" (dict "who" .who "own" $p) | nindent 4 }}
  annotations:
    cluster-autoscaler.kubernetes.io/safe-to-evict: "false"
    karpenter.sh/do-not-disrupt: "true"
    {{- include "proctor.annotations" (dict "own" $p "pools" (omit $p "min" "max" "cooldownSeconds" | toJson)) | nindent 4 }}
spec:
  {{- include "proctor.pod" (dict "root" $root "own" $p "account" (ternary (include "proctor.sandboxAccount" (dict "root" $root "pool" $p)) (printf "%s-worker" (include "proctor.name" $root)) (hasKey $p "sandbox")) "token" (hasKey $p "sandbox")) | nindent 2 }}
  {{- with $p.runtimeClassName }}
  runtimeClassName: {{ . }}
  {{- end }}
  {{- with $p.resourceClaims }}
  resourceClaims: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- if not $p.gpus }}
  {{- include "proctor.spread" .who | nindent 2 }}
  {{- end }}
  terminationGracePeriodSeconds: {{ add $drain 30 }}
  {{- if and $p.download (eq $p.engine "vllm") }}
  initContainers:
    - name: download
      image: {{ include "proctor.image" (dict "root" $root "name" $image) }}
      {{- include "proctor.container" $root | nindent 6 }}
      command:
        - python3
        - -c
        - "import sys, huggingface_hub; [huggingface_hub.snapshot_download(name) for name in sys.argv[1:]]"
        {{- range include "proctor.hubModels" $p | fromJsonArray }}
        - {{ . | quote }}
        {{- end }}
      env:
        {{- include "proctor.cacheEnv" $p | nindent 8 }}
        {{- with $p.download.secretName }}
        - name: HF_TOKEN
          valueFrom: {secretKeyRef: {name: {{ . }}, key: {{ $p.download.key | default "token" }}}}
        {{- end }}
        {{- with $p.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      resources: {requests: {cpu: 100m, memory: 1Gi}}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        - {name: cache, mountPath: /cache}
  {{- end }}
  containers:
    - name: worker
      image: {{ include "proctor.image" (dict "root" $root "name" $image) }}
      {{- include "proctor.container" $root | nindent 6 }}
      command: {{ .command | default "[python3, -P, -m, services.worker]" }}
      ports:
        - {name: health, containerPort: 8084}
        {{- include "proctor.metricsPort" $root | nindent 8 }}
      env:
        - {name: PROCTOR_WORKER_POOL, value: {{ $p.name | quote }}}
        - {name: PROCTOR_WORKER_POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: PROCTOR_WORKER_HEALTH_ADDRESS, value: "0.0.0.0:8084"}
        - {name: PROCTOR_WORKER_DRAIN_SECONDS, value: {{ $drain | quote }}}
        - {name: PROCTOR_POOLS_FILE, value: /etc/proctor/pools/pools.yaml}
        {{- with $root.Values.allowedBaseUrls }}
        - {name: PROCTOR_ALLOWED_BASE_URLS, value: {{ join "," . | quote }}}
        {{- end }}
        {{- with (dig "provider" "apiKey" dict $p) }}
        - {name: {{ include "proctor.apiKeyEnv" . }}_FILE, value: /etc/proctor/key/key}
        {{- end }}
        {{- if eq $p.engine "vllm" }}
        {{- include "proctor.cacheEnv" $p | nindent 8 }}
        {{- if $p.download }}
        - {name: HF_HUB_OFFLINE, value: "1"}
        {{- end }}
        {{- end }}
        {{- include "proctor.sandboxEnv" (dict "root" $root "pool" $p) | nindent 8 }}
        {{- include "proctor.natsEnv" (dict "root" $root "user" (printf "worker-%s" $p.name)) | nindent 8 }}
        {{- include "proctor.env" (dict "root" $root "own" $p "service" "WORKER") | nindent 8 }}
      {{- with $p.envFrom }}
      envFrom: {{ toYaml . | nindent 8 }}
      {{- end }}
      {{- include "proctor.grpcProbes" (dict "port" 8084 "starts" 150) | nindent 6 }}
      resources: {{ include "proctor.workerResources" $p | nindent 8 }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        - {name: pools, mountPath: /etc/proctor/pools, readOnly: true}
        {{- if eq $p.engine "vllm" }}
        - {name: cache, mountPath: /cache}
        - {name: shm, mountPath: /dev/shm}
        {{- end }}
        {{- if (dig "provider" "apiKey" dict $p).secretName }}
        - {name: key, mountPath: /etc/proctor/key, readOnly: true}
        {{- end }}
        {{- include "proctor.natsMounts" (dict "root" $root) | nindent 8 }}
        {{- include "proctor.tlsMount" (dict "root" $root "component" (printf "worker-%s" $p.name)) | nindent 8 }}
        {{- with $p.volumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - {name: tmp, emptyDir: {}}
    - {name: pools, configMap: {name: {{ include "proctor.name" $root }}-pools}}
    {{- if eq $p.engine "vllm" }}
    - name: cache
      {{- toYaml ($p.cache | default (dict "emptyDir" dict)) | nindent 6 }}
    - {name: shm, emptyDir: {medium: Memory, sizeLimit: {{ $p.shmSize | default "8Gi" }}}}
    {{- end }}
    {{- with (dig "provider" "apiKey" dict $p) }}
    - name: key
      secret: {secretName: {{ .secretName }}, defaultMode: 0440, items: [{key: {{ .key | default "api-key" }}, path: key}]}
    {{- end }}
    {{- include "proctor.natsVolumes" (dict "root" $root "user" (printf "worker-%s" $p.name)) | nindent 4 }}
    {{- include "proctor.tlsVolume" (dict "root" $root "component" (printf "worker-%s" $p.name)) | nindent 4 }}
    {{- with $p.volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{- define "proctor.modelNames" -}}
{{- $names := list -}}
{{- range .models }}{{ $names = append $names .name }}{{ end -}}
{{- toJson $names -}}
{{- end }}

{{/* Models of a pool that the hub has: neither folders nor other models of the pool. */}}
{{- define "proctor.hubModels" -}}
{{- $names := include "proctor.modelNames" . | fromJsonArray -}}
{{- $found := list -}}
{{- range .models }}
{{- range list (.path | default .base) .lora }}
{{- if and . (not (hasPrefix "/" .)) (not (has . $names)) }}{{ $found = append $found . }}{{ end -}}
{{- end }}
{{- end }}
{{- toJson (uniq $found) -}}
{{- end }}

{{/* The root of a container is read-only: what is downloaded and compiled stays on the cache volume. */}}
{{- define "proctor.cacheEnv" -}}
- {name: HF_HOME, value: /cache/hf}
- {name: VLLM_CACHE_ROOT, value: /cache/vllm}
- {name: TRITON_CACHE_DIR, value: /cache/triton}
- {name: TORCHINDUCTOR_CACHE_DIR, value: /cache/inductor}
- {name: XDG_CACHE_HOME, value: /cache}
{{- end }}

{{- define "proctor.workerResources" -}}
{{- $resources := deepCopy (.resources | default dict) -}}
{{- if .gpus }}
{{- $resources = mergeOverwrite $resources (dict "limits" (dict (.gpuResource | default "nvidia.com/gpu") .gpus)) -}}
{{- end }}
{{- toYaml $resources -}}
{{- end }}

{{/* Under an autoscaler an upgrade keeps what runs; a new Deployment starts with the fewest. */}}
{{- define "proctor.workerReplicas" -}}
{{- if not .root.Values.omitReplicas -}}
{{- $there := dict -}}
{{- /* A lookup fails for a kind that the cluster lacks, and the check of kinds says it in a sentence. */ -}}
{{- if and .root.Values.keda.enabled (.root.Capabilities.APIVersions.Has .apiVersion) }}
{{- $there = lookup .apiVersion .kind .root.Release.Namespace .name -}}
{{- end -}}
{{- if $there -}}
replicas: {{ $there.spec.replicas }}
{{- else -}}
replicas: {{ .pool.min | default 0 }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* A further node of a pool that spans several: it lends its GPUs to the leader and asks nobody. */}}
{{- define "proctor.rayNode" -}}
{{- $p := .pool -}}
metadata:
  labels: {{ include "proctor.labels" .who | nindent 4 }}
spec:
  {{- include "proctor.pod" (dict "root" .root "own" $p "account" (printf "%s-worker" (include "proctor.name" .root))) | nindent 2 }}
  {{- with $p.runtimeClassName }}
  runtimeClassName: {{ . }}
  {{- end }}
  terminationGracePeriodSeconds: {{ add (int ($p.drainSeconds | default 120)) 30 }}
  containers:
    - name: node
      image: {{ include "proctor.image" (dict "root" .root "name" (include "proctor.workerImage" $p)) }}
      {{- include "proctor.container" .root | nindent 6 }}
      command: [sh, -c, "exec ray start --block --address=$LWS_LEADER_ADDRESS:6379"]
      env:
        - {name: HOME, value: /tmp}
        {{- include "proctor.cacheEnv" $p | nindent 8 }}
        {{- with $p.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      resources: {{ include "proctor.workerResources" $p | nindent 8 }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        - {name: cache, mountPath: /cache}
        - {name: shm, mountPath: /dev/shm}
  volumes:
    - {name: tmp, emptyDir: {}}
    - name: cache
      {{- toYaml ($p.cache | default (dict "emptyDir" dict)) | nindent 6 }}
    - {name: shm, emptyDir: {medium: Memory, sizeLimit: {{ $p.shmSize | default "8Gi" }}}}
{{- end }}
