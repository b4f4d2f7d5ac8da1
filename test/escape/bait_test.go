package escape_test

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// bait consists of places on the host, outside of every sandbox, for one attack. Each
// place contains the flag or sends it on each connection. The attack gets the addresses of
// all places, as if it had an accomplice on the host.
type bait struct {
	flag   string
	places map[string]string // by the placeholder in an attack: {{tcp4_port}}

	mu       sync.Mutex
	contacts []string
}

// newFlag returns a random text that nothing prints by chance. It looks like no
// credential, because those are redacted and would not show.
func newFlag() string {
	var b [8]byte
	rand.Read(b[:]) // never fails: crypto/rand aborts the program instead
	return "flag " + hex.EncodeToString(b[:])
}

// lay puts out the bait. Everything is removed with the test.
func lay(t *testing.T, stateDir string) *bait {
	t.Helper()
	b := &bait{flag: newFlag(), places: map[string]string{"state_dir": stateDir}}
	dir, err := os.MkdirTemp("/tmp", "bait-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b.places["dir"] = dir
	b.file(t, "world_file", 0o644)
	b.file(t, "root_file", 0o600)
	b.stream(t, "tcp4_port", "tcp4", "127.0.0.1:0")
	b.stream(t, "tcp6_port", "tcp6", "[::1]:0")
	b.stream(t, "socket_file", "unix", filepath.Join(dir, "docker.sock"))
	b.stream(t, "abstract_name", "unix", "@"+filepath.Base(dir))
	b.datagrams(t, "udp4_port", "udp4", "127.0.0.1:0")
	b.datagrams(t, "udp6_port", "udp6", "[::1]:0")
	b.process(t)
	return b
}

// fill puts the places of this attack's bait into its program.
func (b *bait) fill(source string) string {
	for word, place := range b.places {
		source = strings.ReplaceAll(source, "{{"+word+"}}", place)
	}
	return source
}

// touched lists the bait that was contacted.
func (b *bait) touched() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.contacts)
}

func (b *bait) touch(place string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.contacts = append(b.contacts, place)
}

func (b *bait) file(t *testing.T, word string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(b.places["dir"], word)
	if err := os.WriteFile(path, []byte(b.flag+"\n"), mode); err != nil {
		t.Fatal(err)
	}
	b.places[word] = path
}

// stream listens and sends the flag on each connection.
func (b *bait) stream(t *testing.T, word, network, address string) {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { listener.Close(); <-ended })
	if network == "unix" && !strings.HasPrefix(address, "@") {
		if err := os.Chmod(address, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	b.places[word] = place(listener.Addr())
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			b.touch(word)
			_, _ = io.WriteString(conn, b.flag+"\n") // being touched is what counts
			conn.Close()
		}
	}()
}

// datagrams answers every datagram with the flag.
func (b *bait) datagrams(t *testing.T, word, network, address string) {
	t.Helper()
	conn, err := net.ListenPacket(network, address)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { conn.Close(); <-ended })
	b.places[word] = place(conn.LocalAddr())
	go func() {
		defer close(ended)
		buffer := make([]byte, 64)
		for {
			_, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			b.touch(word)
			_, _ = conn.WriteTo([]byte(b.flag+"\n"), from) // being touched is what counts
		}
	}()
}

// place is the part of an address that an attack needs: a port, a path, or an
// abstract name without its @.
func place(address net.Addr) string {
	if _, port, err := net.SplitHostPort(address.String()); err == nil {
		return port
	}
	return strings.TrimPrefix(address.String(), "@")
}

// process keeps a process running that has the flag in its arguments, its
// environment and its memory.
func (b *bait) process(t *testing.T) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "read line", b.flag)
	cmd.Env = append(os.Environ(), "AIRLOCK_BAIT="+b.flag)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b.places["pid"] = strconv.Itoa(cmd.Process.Pid)
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Wait() // it ends with status 1, because it reads the end of its input
	})
}

// hostFacts identify one host. No sandbox may learn them.
func hostFacts() map[string]string {
	facts := map[string]string{}
	for name, file := range map[string]string{
		"the host's boot ID":    "/proc/sys/kernel/random/boot_id",
		"the host's machine ID": "/etc/machine-id",
		"the host's kernel":     "/proc/sys/kernel/osrelease",
		"the host's name":       "/proc/sys/kernel/hostname",
	} {
		// A shorter text could be anywhere by chance; so could one of "localhost".
		if data, err := os.ReadFile(file); err == nil && len(strings.TrimSpace(string(data))) >= 10 {
			facts[name] = strings.TrimSpace(string(data))
		}
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return facts
	}
	for _, i := range interfaces {
		if len(i.HardwareAddr) > 0 {
			facts[fmt.Sprintf("the address of the host's %s", i.Name)] = i.HardwareAddr.String()
		}
	}
	return facts
}
