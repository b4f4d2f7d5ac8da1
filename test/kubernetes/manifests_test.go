// Package kubernetes tests deploy/kubernetes. It is a module of its own, because nothing of Airlock uses Kubernetes'
// libraries.
package kubernetes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const manifests = "../../deploy/kubernetes"

// build returns the YAML of each object that kustomize makes of a directory.
func build(t *testing.T, dir string) [][]byte {
	t.Helper()
	options := krusty.MakeDefaultOptions()
	made, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for _, object := range made.Resources() {
		text, err := object.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	return all
}

// decode reads objects as the API server does with strict validation: an unknown or a repeated field is an error.
func decode(t *testing.T, texts [][]byte) []runtime.Object {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var all []runtime.Object
	for _, text := range texts {
		object, _, err := decoder.Decode(text, nil, nil)
		if err != nil {
			t.Errorf("%v\n%s", err, text)
			continue
		}
		all = append(all, object)
	}
	return all
}

// withAutoscaling is the example with the component that is commented out.
func withAutoscaling(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(manifests)); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "example", "kustomization.yaml")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "#components:", "components:", 1)
	if changed == string(text) {
		t.Fatal("the example does not name the component")
	}
	if err := os.WriteFile(name, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "example")
}

func kinds(objects []runtime.Object) (all []string) {
	for _, object := range objects {
		all = append(all, object.GetObjectKind().GroupVersionKind().Kind)
	}
	slices.Sort(all)
	return all
}

func TestManifestsAreOfKubernetesSchema(t *testing.T) {
	base := []string{"ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Service", "Service", "ServiceAccount",
		"StatefulSet"}
	example := slices.Sorted(slices.Values(append([]string{"Ingress", "Namespace"}, base...)))
	scaled := slices.Sorted(slices.Values(append([]string{"HorizontalPodAutoscaler"}, example...)))
	for _, test := range []struct {
		dir  string
		want []string
	}{{filepath.Join(manifests, "base"), base}, {filepath.Join(manifests, "example"), example},
		{withAutoscaling(t), scaled}} {
		if got := kinds(decode(t, build(t, test.dir))); !slices.Equal(got, test.want) {
			t.Errorf("%s has %v, want %v", test.dir, got, test.want)
		}
	}
}

// Issue 28: an upgrade with the autoscaler set the number of nodes back to that of the manifest.
func TestAnUpgradeKeepsTheNodesOfTheAutoscaler(t *testing.T) {
	for dir, want := range map[string]bool{filepath.Join(manifests, "example"): true, withAutoscaling(t): false} {
		for _, object := range decode(t, build(t, dir)) {
			if set, ok := object.(*appsv1.StatefulSet); ok && (set.Spec.Replicas != nil) != want {
				t.Errorf("%s: the manifest sets the number of nodes: %t, want %t", dir, !want, want)
			}
		}
	}
}

// Only the program that starts sandboxes has privileges, no Pod has a credential of the API server, and each volume,
// port and ConfigMap that is used exists.
func TestNodesHaveWhatTheyNeed(t *testing.T) {
	var set *appsv1.StatefulSet
	var config *corev1.ConfigMap
	for _, object := range decode(t, build(t, filepath.Join(manifests, "example"))) {
		switch object := object.(type) {
		case *appsv1.StatefulSet:
			set = object
		case *corev1.ConfigMap:
			config = object
		}
	}
	pod := set.Spec.Template.Spec
	if *pod.AutomountServiceAccountToken {
		t.Error("Pods get a credential of the API server")
	}
	volumes := map[string]bool{"state": len(set.Spec.VolumeClaimTemplates) == 1}
	for _, volume := range pod.Volumes {
		volumes[volume.Name] = true
		if volume.ConfigMap != nil && volume.ConfigMap.Name != config.Name {
			t.Errorf("the Pods mount %s, and the configuration is %s", volume.ConfigMap.Name, config.Name)
		}
	}
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		privileged := container.SecurityContext.Privileged != nil && *container.SecurityContext.Privileged
		if privileged != (container.Name == "airlock") || !*container.SecurityContext.ReadOnlyRootFilesystem {
			t.Errorf("%s has the security context %+v", container.Name, container.SecurityContext)
		}
		if container.Image != "registry.example.com/airlock:0.1.0" {
			t.Errorf("%s has the image %s", container.Name, container.Image)
		}
		for _, mount := range container.VolumeMounts {
			if !volumes[mount.Name] {
				t.Errorf("%s mounts %s, which is no volume", container.Name, mount.Name)
			}
		}
	}
}
