package cluster

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// The network of a cluster of machines. The test and the servers that the nodes use have addresses of the bridge.
const (
	bridgeOfTest = "10.77.0.1"
	firstServer  = "10.77.0.2" // PostgreSQL
	secondServer = "10.77.0.3"

	inNetwork = "AIRLOCK_TEST_NETWORK" // set in the process that has the network
)

// ownNetwork runs the test again in a process with a separate network, and returns false. In that process it makes a
// bridge and returns true.
func ownNetwork(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inNetwork) != "" {
		for _, args := range [][]string{{"link", "set", "lo", "up"}, {"link", "add", "bridge", "type", "bridge"},
			{"address", "add", bridgeOfTest + "/24", "dev", "bridge"},
			{"address", "add", firstServer + "/24", "dev", "bridge"},
			{"address", "add", secondServer + "/24", "dev", "bridge"}, {"link", "set", "bridge", "up"}} {
			if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
				t.Fatalf("this machine makes no bridge in a network namespace: ip %v: %v\n%s", args, err, out)
			}
		}
		return true
	}
	testenv.Sandbox(t) // or the test is skipped
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	if end, ok := t.Deadline(); ok {
		cmd.Args = append(cmd.Args, "-test.timeout="+(time.Until(end)-10*time.Second).String())
	}
	cmd.Env = append(os.Environ(), inNetwork+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(t.Output(), &out), t.Output()
	if err := cmd.Run(); err != nil || !bytes.Contains(out.Bytes(), []byte("--- PASS: "+t.Name()+" (")) {
		t.Error("in its network: ", err)
	}
	return false
}

// machine is a network namespace with an address at the bridge.
type machine struct {
	address string
	process string // the ID of a process that is in it
}

// newMachine makes machine i until the test ends.
func newMachine(t *testing.T, i int) *machine {
	t.Helper()
	holder := exec.Command("cat") // it ends with this process
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	input, err := holder.StdinPipe()
	if err == nil {
		err = holder.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		input.Close()
		if err := holder.Wait(); err != nil {
			t.Error(err)
		}
	})
	m := &machine{address: fmt.Sprintf("10.77.0.%d", 10+i), process: strconv.Itoa(holder.Process.Pid)}
	name := fmt.Sprintf("node%d", i)
	ip(t, "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", m.process)
	ip(t, "link", "set", name, "master", "bridge", "up")
	m.ip(t, "link", "set", "lo", "up")
	m.ip(t, "address", "add", m.address+"/24", "dev", "eth0")
	m.ip(t, "link", "set", "eth0", "up")
	return m
}

// enter has a command run in the machine. The process is the same.
func (m *machine) enter(cmd *exec.Cmd) {
	path, err := exec.LookPath("nsenter")
	if err != nil {
		cmd.Err = err
		return
	}
	cmd.Args = append([]string{"nsenter", "--target", m.process, "--net", "--", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = path
}

// lose has all packets to an address lost until find: they go to a hardware address that nobody has. Nothing reports
// this to the sender.
func (m *machine) lose(t *testing.T, address string) {
	t.Helper()
	m.ip(t, "neighbour", "replace", address, "lladdr", "02:00:00:00:00:01", "nud", "permanent", "dev", "eth0")
}

func (m *machine) find(t *testing.T, address string) {
	t.Helper()
	m.ip(t, "neighbour", "del", address, "dev", "eth0")
}

func (m *machine) ip(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("ip", args...)
	m.enter(cmd)
	execute(t, cmd)
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	execute(t, exec.Command("ip", args...))
}

func execute(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
}
