{{/* Names, labels, images and what every pod of Proctor has. `root` is the chart's scope, `component` a service. */}}

{{- define "proctor.name" -}}
{{- $name := .Values.nameOverride | default (ternary .Release.Name (printf "%s-proctor" .Release.Name) (contains "proctor" .Release.Name)) -}}
{{- $name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "proctor.selector" -}}
app.kubernetes.io/name: proctor
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "proctor.labels" -}}
{{ include "proctor.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: proctor
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{/* With those of a component's values, which replace none of the chart's. */}}
{{- define "proctor.podLabels" -}}
{{- merge (include "proctor.labels" .who | fromYaml) (.own.podLabels | default dict) | toYaml -}}
{{- end }}

{{- define "proctor.image" -}}
{{- $image := .root.Values.image -}}
{{- $tag := get $image.digests .name | default $image.tag | default .root.Chart.AppVersion -}}
{{- with $image.registry }}{{ trimSuffix "/" . }}/{{ end -}}
proctor-{{ .name }}{{ ternary "@" ":" (hasPrefix "sha256:" $tag) }}{{ $tag }}
{{- end }}

{{/* The part of a pod that all components share; `own` are the values of the component, `account` its service account. */}}
{{- define "proctor.pod" -}}
serviceAccountName: {{ .account }}
automountServiceAccountToken: {{ .token | default false }}
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .own.priorityClassName | default .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .root.Values.runAsUser }}
  runAsGroup: {{ .root.Values.runAsUser }}
  fsGroup: {{ .root.Values.runAsUser }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .own.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .own.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .own.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "proctor.spread" -}}
topologySpreadConstraints:
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{ include "proctor.selector" $ | nindent 8 }}
{{- end }}
{{- end }}

{{- define "proctor.container" -}}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* `pools` is what of the pools a pod reads when it starts: another one restarts it. */}}
{{- define "proctor.annotations" -}}
{{- with .own.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- with .pools }}
checksum/pools: {{ sha256sum . }}
{{- end }}
{{- end }}

{{/* A probe asks over the network of the node: the default limit of a second is short on a busy one. */}}
{{- define "proctor.grpcProbes" -}}
startupProbe:
  grpc: {port: {{ .port }}}
  periodSeconds: 2
  timeoutSeconds: 3
  failureThreshold: {{ .starts | default 60 }}
readinessProbe:
  grpc: {port: {{ .port }}}
  periodSeconds: 5
  timeoutSeconds: 3
livenessProbe:
  tcpSocket: {port: {{ .port }}}
  periodSeconds: 10
  timeoutSeconds: 3
  failureThreshold: 6
{{- end }}

{{- define "proctor.pdb" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "proctor.name" .root }}-{{ .component }}
  labels: {{ include "proctor.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{ include "proctor.selector" . | nindent 6 }}
{{- end }}
