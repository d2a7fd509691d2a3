package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.yaml.in/yaml/v3"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

// manifest is what the tests read of an object of Kubernetes.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		ClusterIP                string            `yaml:"clusterIP"`
		PublishNotReadyAddresses bool              `yaml:"publishNotReadyAddresses"`
		Selector                 map[string]any    // of a service: labels
		Ports                    []manifestPort    // of a service
		MaxUnavailable           int               `yaml:"maxUnavailable"`
		ServiceName              string            `yaml:"serviceName"`
		PodManagementPolicy      string            `yaml:"podManagementPolicy"`
		Replicas                 int               //
		VolumeClaimTemplates     []manifestNamed   `yaml:"volumeClaimTemplates"`
		Template                 *manifestTemplate // of a stateful set
	}
}

type manifestNamed struct{ Metadata struct{ Name string } }

type manifestPort struct {
	Name          string
	Port          int
	ContainerPort int    `yaml:"containerPort"`
	TargetPort    string `yaml:"targetPort"`
}

type manifestTemplate struct {
	Metadata struct{ Labels map[string]string }
	Spec     struct {
		EnableServiceLinks           *bool          `yaml:"enableServiceLinks"`
		AutomountServiceAccountToken *bool          `yaml:"automountServiceAccountToken"`
		SecurityContext              map[string]any `yaml:"securityContext"`
		Containers                   []struct {
			Args []string
			Env  []struct {
				Name, Value string
				ValueFrom   struct {
					FieldRef struct {
						FieldPath string `yaml:"fieldPath"`
					} `yaml:"fieldRef"`
				} `yaml:"valueFrom"`
			}
			Ports           []manifestPort
			SecurityContext map[string]any `yaml:"securityContext"`
			Probes          map[string]any `yaml:",inline"`
			VolumeMounts    []struct {
				Name      string
				MountPath string `yaml:"mountPath"`
			} `yaml:"volumeMounts"`
		}
		Volumes []struct {
			Name   string
			Secret struct {
				SecretName string `yaml:"secretName"`
			}
		}
	}
}

// readManifests returns the objects of a file by kind and name.
func readManifests(t *testing.T, file string) map[string]*manifest {
	t.Helper()
	text, err := os.ReadFile(file)
	drill.Check(t, err)
	objects := map[string]*manifest{}
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var m manifest
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		objects[m.Kind+" "+m.Metadata.Name] = &m
	}
}

// TestDeployKubernetes: names and labels of the objects fit together, the pods have no rights that they do
// not need, and servers with the arguments and the environment of the pods get healthy. The fields are not
// checked against the schema of Kubernetes.
func TestDeployKubernetes(t *testing.T) {
	t.Parallel()
	for file, nodes := range map[string]int{"deploy/kubernetes/one-node.yaml": 1, "deploy/kubernetes/three-nodes.yaml": 3} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			objects := readManifests(t, file)
			set := objects["StatefulSet mayfly"]
			if set == nil || set.Spec.Template == nil || len(set.Spec.Template.Spec.Containers) != 1 {
				t.Fatalf("the file has %v, and no stateful set with one container", objects)
			}
			checkManifests(t, objects, nodes)
			if !testing.Short() {
				playPods(t, set, nodes)
			}
		})
	}
}

func checkManifests(t *testing.T, objects map[string]*manifest, nodes int) {
	set := objects["StatefulSet mayfly"]
	pod := &set.Spec.Template.Spec
	container := &pod.Containers[0]
	ports := map[string]bool{}
	for _, p := range container.Ports {
		ports[p.Name] = true
	}
	labels := map[string]any{}
	for name, value := range set.Spec.Template.Metadata.Labels {
		labels[name] = value
	}
	for name, o := range objects {
		switch {
		case o.Kind == "Secret":
			t.Errorf("%s is in the file", name)
		case o.Kind == "Service" && !reflect.DeepEqual(o.Spec.Selector, labels), o.Kind != "Service" && !reflect.DeepEqual(o.Spec.Selector["matchLabels"], any(labels)):
			t.Errorf("%s selects %v, the pods have %v", name, o.Spec.Selector, labels)
		}
		for _, p := range o.Spec.Ports {
			if !ports[p.TargetPort] {
				t.Errorf("%s: the pods have no port %s", name, p.TargetPort)
			}
		}
	}
	headless := objects["Service "+set.Spec.ServiceName]
	if headless == nil || headless.Spec.ClusterIP != "None" || !headless.Spec.PublishNotReadyAddresses {
		t.Errorf("the pods get no names before they are ready")
	}
	if set.Spec.Replicas != nodes {
		t.Errorf("%d replicas, want %d", set.Spec.Replicas, nodes)
	}
	if budget := objects["PodDisruptionBudget mayfly"]; nodes > 1 && (budget == nil || budget.Spec.MaxUnavailable != 1 || set.Spec.PodManagementPolicy != "Parallel") {
		t.Error("a drain may take the majority, or the first node waits for ever for the others")
	}
	for what, got := range map[string]any{
		"runAsNonRoot": pod.SecurityContext["runAsNonRoot"], "readOnlyRootFilesystem": container.SecurityContext["readOnlyRootFilesystem"],
	} {
		if got != true {
			t.Errorf("%s is %v", what, got)
		}
	}
	if pod.SecurityContext["runAsUser"] != 65532 || pod.SecurityContext["fsGroup"] != 65532 || container.SecurityContext["allowPrivilegeEscalation"] != false ||
		!reflect.DeepEqual(container.SecurityContext["capabilities"], map[string]any{"drop": []any{"ALL"}}) {
		t.Errorf("the pods have the rights %v, %v", pod.SecurityContext, container.SecurityContext)
	}
	for what, off := range map[string]*bool{"enableServiceLinks": pod.EnableServiceLinks, "automountServiceAccountToken": pod.AutomountServiceAccountToken} {
		if off == nil || *off {
			t.Errorf("%s is on", what)
		}
	}
	sources := map[string]bool{}
	for _, v := range pod.Volumes {
		sources[v.Name] = v.Secret.SecretName != ""
	}
	for _, claim := range set.Spec.VolumeClaimTemplates {
		sources[claim.Metadata.Name] = true
	}
	mounts := map[string]bool{}
	for _, m := range container.VolumeMounts {
		if mounts[m.MountPath] = true; !sources[m.Name] {
			t.Errorf("nothing is mounted at %s", m.MountPath)
		}
	}
	if !mounts["/data"] || !mounts["/etc/mayfly"] {
		t.Errorf("the pods mount %v", mounts)
	}
}

// playPods starts servers with the arguments of the pods, on this machine, and asks what the probes ask.
func playPods(t *testing.T, set *manifest, nodes int) {
	container := &set.Spec.Template.Spec.Containers[0]
	ports, free := map[string]string{}, map[string]string{}
	for _, p := range container.Ports {
		ports[p.Name], free[p.Name] = fmt.Sprint(":", p.ContainerPort), ":"+harness.FreePort(t)
	}
	secrets := filepath.Dir(harness.WriteFile(t, "mayfly.conf", "requirepass secret"))
	drill.Check(t, os.WriteFile(filepath.Join(secrets, "nodes"), []byte(strings.Repeat("0123456789abcdef", 4)), 0o440))
	addresses := []string{"/etc/mayfly", secrets}
	hosts := make([]string, nodes) // each node has an address of its own, as a pod has
	for i := range hosts {
		hosts[i] = harness.Host(t)
		name := fmt.Sprintf("mayfly-%d.%s.$(NAMESPACE).svc.cluster.local%s", i, set.Spec.ServiceName, ports["nodes"])
		addresses = append(addresses, name, hosts[i]+free["nodes"])
	}
	var clients []*redis.Client
	var health []string
	for i, host := range hosts {
		metrics := host + free["metrics"]
		known := append([]string{ports["metrics"], metrics}, addresses...)
		expand := func(text string) string {
			text = strings.ReplaceAll(text, "$(POD)", fmt.Sprintf("mayfly-%d", i)) // before the names that contain it
			return strings.NewReplacer(known...).Replace(text)
		}
		var args []string
		for _, arg := range container.Args {
			args = append(args, expand(arg))
		}
		if left := strings.Join(args, " "); strings.Contains(left, "$(") || strings.Contains(left, ".local") {
			t.Fatalf("the arguments %s name what the pods do not have", left)
		}
		dir := t.TempDir()
		cmd := exec.Command(harness.Binary, args...)
		cmd.Env = append(os.Environ(), "MAYFLY_BIND="+host, "MAYFLY_PORT="+free["redis"][1:])
		for _, v := range container.Env {
			if v.ValueFrom.FieldRef.FieldPath == "" {
				cmd.Env = append(cmd.Env, v.Name+"="+strings.Replace(v.Value, "/data", dir, 1))
			}
		}
		p := &harness.Process{T: t, Cmd: cmd}
		cmd.Stderr = &p.Log
		drill.Check(t, cmd.Start())
		t.Cleanup(p.Discard)
		clients, health = append(clients, connect(t, host+free["redis"], "secret")), append(health, metrics)
	}
	for _, probe := range []string{"startupProbe", "readinessProbe", "livenessProbe"} {
		m, _ := container.Probes[probe].(map[string]any)
		get, _ := m["httpGet"].(map[string]any)
		if get["port"] != "metrics" {
			t.Fatalf("%s is %v", probe, container.Probes[probe])
		}
		for _, address := range health {
			url := fmt.Sprint("http://", address, get["path"])
			harness.WaitFor(t, probe+" of "+url, func() bool {
				response, err := http.Get(url)
				if err != nil {
					return false
				}
				_ = response.Body.Close()
				return response.StatusCode == http.StatusOK
			})
		}
	}
	for i, client := range clients { // with a proxy each node takes writes
		if err := client.Set(t.Context(), fmt.Sprint(i), "v", 0).Err(); err != nil {
			t.Errorf("node %d: %v", i, err)
		}
	}
}
