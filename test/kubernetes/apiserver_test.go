package kubernetes

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// envPrograms names a directory with etcd and kube-apiserver, which `make kubernetes` builds.
const envPrograms = "AIRLOCK_KUBERNETES"

// startServer starts etcd and an API server on the loopback interface, and returns how an administrator reaches it.
func startServer(t *testing.T) *rest.Config {
	t.Helper()
	programs := os.Getenv(envPrograms)
	if programs == "" {
		t.Skip(envPrograms + " is not set: make kubernetes builds the API server and runs this test")
	}
	dir := t.TempDir()
	store := "http://" + freeAddress(t)
	start(t, dir, filepath.Join(programs, "etcd"), "--data-dir="+filepath.Join(dir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls="+store, "--advertise-client-urls="+store, "--listen-peer-urls=http://"+freeAddress(t),
		"--log-level=warn")
	key, tokens := filepath.Join(dir, "accounts.pem"), filepath.Join(dir, "tokens")
	accounts, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	write(t, key, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(accounts)}))
	secret := rand.Text()
	write(t, tokens, fmt.Appendf(nil, "%s,admin,admin,system:masters\n", secret))
	host, port, _ := net.SplitHostPort(freeAddress(t))
	start(t, dir, filepath.Join(programs, "kube-apiserver"), "--etcd-servers="+store, "--bind-address="+host,
		"--secure-port="+port, "--cert-dir="+filepath.Join(dir, "certificates"), "--token-auth-file="+tokens,
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+key,
		"--service-account-signing-key-file="+key, "--authorization-mode=RBAC", "--allow-privileged",
		"--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none")
	return &rest.Config{Host: "https://" + net.JoinHostPort(host, port), BearerToken: secret,
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(dir, "certificates", "apiserver.crt")}}
}

// start runs a program until the test ends. It ends with the test's process.
func start(t *testing.T, dir, program string, args ...string) {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s: %s", filepath.Base(program), log.Bytes()[max(0, log.Len()-4<<10):])
		}
	})
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// until calls f until it succeeds or the test has no time left.
func until(t *testing.T, f func() error) {
	t.Helper()
	for {
		err := f()
		if err == nil {
			return
		}
		if end, ok := t.Deadline(); ok && time.Until(end) < 10*time.Second {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestTheAPIServerAcceptsTheManifests applies them as `kubectl apply --server-side` does, with strict validation, and
// makes a Pod of the StatefulSet, as its controller does: only a namespace that admits privileged Pods takes it.
func TestTheAPIServerAcceptsTheManifests(t *testing.T) {
	config := startServer(t)
	var found discovery.CachedDiscoveryInterface
	until(t, func() error {
		client, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return err
		}
		found = memory.NewMemCacheClient(client)
		if _, err := client.ServerVersion(); err != nil {
			return err
		}
		_, err = client.RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return err
	})
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(found)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 2 { // the second changes nothing
		for _, text := range build(t, withAutoscaling(t)) {
			if err := apply(t.Context(), client, mapper, text); err != nil {
				t.Errorf("round %d: %v\n%s", round, err, text)
			}
		}
	}
	for _, text := range []string{
		"{apiVersion: v1, kind: Namespace, metadata: {name: baseline, labels: " +
			"{pod-security.kubernetes.io/enforce: baseline}}}",
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: airlock, namespace: baseline}}",
	} {
		if err := apply(t.Context(), client, mapper, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := apply(t.Context(), client, mapper, podOf(t, "airlock")); err != nil {
		t.Error(err)
	}
	if err := apply(t.Context(), client, mapper, podOf(t, "baseline")); err == nil ||
		!strings.Contains(err.Error(), "privileged") {
		t.Errorf("a namespace that admits no privileged Pods answered %v", err)
	}
}

// podOf is a Pod of the StatefulSet in a namespace.
func podOf(t *testing.T, namespace string) []byte {
	t.Helper()
	for _, text := range build(t, filepath.Join(manifests, "example")) {
		set := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &set.Object); err != nil {
			t.Fatal(err)
		}
		if set.GetKind() != "StatefulSet" {
			continue
		}
		template, _, err := unstructured.NestedMap(set.Object, "spec", "template")
		if err != nil {
			t.Fatal(err)
		}
		pod := &unstructured.Unstructured{Object: template}
		pod.SetAPIVersion("v1")
		pod.SetKind("Pod")
		pod.SetName("airlock-0")
		pod.SetNamespace(namespace)
		volumes, _, err := unstructured.NestedSlice(pod.Object, "spec", "volumes")
		if err != nil {
			t.Fatal(err)
		}
		volumes = append(volumes, map[string]any{"name": "state", "emptyDir": map[string]any{}})
		if err := unstructured.SetNestedSlice(pod.Object, volumes, "spec", "volumes"); err != nil {
			t.Fatal(err)
		}
		made, err := yaml.Marshal(pod.Object)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	t.Fatal("the example has no StatefulSet")
	return nil
}

// apply is a server-side apply with strict validation.
func apply(ctx context.Context, client dynamic.Interface, mapper *restmapper.DeferredDiscoveryRESTMapper,
	text []byte) error {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &object.Object); err != nil {
		return err
	}
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	resources := dynamic.ResourceInterface(client.Resource(mapping.Resource))
	if object.GetNamespace() != "" {
		resources = client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	_, err = resources.Patch(ctx, object.GetName(), "application/apply-patch+yaml", text,
		metav1.PatchOptions{FieldManager: "test", FieldValidation: metav1.FieldValidationStrict})
	return err
}
