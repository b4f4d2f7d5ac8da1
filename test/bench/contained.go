package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/runsc"
)

const (
	downloadBytes = 64 << 20
	downloads     = 10
	// containedRounds is how many servers are started.
	containedRounds = 60
)

// client requests a host: argv has the address, the name, how many small requests and how many downloads. It prints one
// line of JSON with the times.
const client = `import json, socket, sys, time
address, name, small, large = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
host, port = address.rsplit(":", 1)
def get(path):
    began = time.perf_counter()
    s = socket.create_connection((host, int(port)))
    connected = time.perf_counter() - began
    s.sendall(("GET " + path + " HTTP/1.1\r\nHost: " + name + "\r\nConnection: close\r\n\r\n").encode())
    buf, total = bytearray(1 << 18), 0
    while n := s.recv_into(buf): total += n
    s.close()
    return connected, time.perf_counter() - began, total
requests = [get("/small")[1] * 1000 for _ in range(small)]
rates = []
for _ in range(large):
    _, took, total = get("/large")
    rates.append(total / took / 1e6)
print(json.dumps({"requests": requests, "rates": rates}), flush=True)
`

// containedBench is what the measurements of programs in sandboxes share.
type containedBench struct {
	*bench
	sandboxes    *runner.Runner
	python, node images.Image
}

// measureContained measures connections of a sandbox to a named host beside direct ones, without the policies and the
// record of a connection, and a server in a sandbox beside the same one without.
func measureContained(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	logger := slog.New(slog.DiscardHandler)
	c := &containedBench{bench: b}
	extra := images.Extra{Server: true}
	for language, image := range map[string]*images.Image{"python": &c.python, "node": &c.node} {
		if _, err := images.Build(ctx, images.BuildOptions{Home: b.home, Name: language, Extra: extra}); err != nil {
			return err
		}
		if *image, err = images.OpenWith(b.home, language, extra); err != nil {
			return err
		}
		undo.Add(image.Close)
	}
	driver, err := runsc.New(&runsc.Options{Path: b.bin("runsc"), Logger: logger, Unenforced: true})
	if err != nil {
		return err
	}
	undo.Add(func() error { driver.Close(); return nil })
	c.sandboxes, err = runner.New(driver, &runner.Options{Logger: logger, StateDir: store.Run(b.home)})
	if err != nil {
		return err
	}
	undo.Add(func() error { return c.sandboxes.Close(context.Background()) })
	return errors.Join(c.connections(ctx), c.servers(ctx))
}

// start starts a program in a sandbox.
func (c *containedBench) start(ctx context.Context, image images.Image, network *runner.Network, mounts []runner.Mount,
	args ...string) (*runner.Program, error) {
	return c.sandboxes.StartProgram(ctx, runner.Request{Limits: runner.DefaultLimits(), Network: network,
		Mounts: mounts, Image: runner.Image{Name: image.Name, Digest: image.Digest, RootFS: image.RootFS,
			Layout: image.Layout, Args: args, Env: image.Env}})
}

// permits permits and records nothing.
type permits struct{}

// Connect implements egress.Gate.
func (permits) Connect(context.Context, egress.Host) (func(egress.Outcome), error) {
	return func(egress.Outcome) {}, nil
}

// connections measures connections, and the network stack.
func (c *containedBench) connections(ctx context.Context) error {
	large := make([]byte, downloadBytes)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			w.Header().Set("Content-Length", strconv.Itoa(downloadBytes))
			_, _ = w.Write(large)
			return
		}
		_, _ = io.WriteString(w, "x")
	}))
	defer site.Close()
	n := &containedNetwork{address: site.Listener.Addr().String(),
		host: egress.Host{Name: "bench.example.com", Port: 80}}
	names := filepath.Join(c.home, "bench-names")
	resolver := "nameserver " + egress.Gateway.String() + "\n"
	err := errors.Join(os.MkdirAll(names, 0o755),
		os.WriteFile(filepath.Join(names, "resolv.conf"), []byte(resolver), 0o644))
	if err != nil {
		return err
	}
	n.mounts = []runner.Mount{{Source: names, Target: runner.TrustDir}}
	return errors.Join(c.requests(ctx, n), c.stack(ctx, n))
}

// containedNetwork is the network of programs that reach one host, which is a server of this process.
type containedNetwork struct {
	address string
	host    egress.Host
	mounts  []runner.Mount
}

// open returns a new network.
func (n *containedNetwork) open() (*egress.Network, *runner.Network, error) {
	ours, theirs, err := egress.Pair()
	if err != nil {
		return nil, nil, err
	}
	network, err := egress.New(ours, &egress.Options{Hosts: []egress.Host{n.host}, Gate: permits{},
		Limits: egress.Limits{Total: 1 << 20, Bytes: 1 << 40},
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", n.address)
		}})
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return network, &runner.Network{Device: theirs, Closed: network.Closed(), Open: network.Open}, nil
}

// requests measures requests and downloads inside of a sandbox and outside.
func (c *containedBench) requests(ctx context.Context, n *containedNetwork) error {
	network, device, err := n.open()
	if err != nil {
		return err
	}
	defer network.Close()
	small, rounds := strconv.Itoa(c.rounds), strconv.Itoa(downloads)
	program, err := c.start(ctx, c.python, device, n.mounts, append(images.PythonArgs(), "-c", client, n.host.String(),
		n.host.Name, small, rounds)...)
	_ = device.Device.Close()
	if err != nil {
		return err
	}
	inside, err := timesOf(program)
	if err != nil {
		return err
	}
	python, err := interpreter(ctx)
	if err != nil {
		return err
	}
	direct := exec.CommandContext(ctx, python, "-c", client, n.address, n.host.Name, small, rounds)
	text, err := direct.Output()
	if err != nil {
		return err
	}
	var outside times
	if err := json.Unmarshal(text, &outside); err != nil {
		return err
	}
	c.table.add(newRow("a connection and a request to a named host", "ms", inside.Requests),
		newRow("the same without a sandbox", "ms", outside.Requests),
		newRow("a download from a named host", "MB/s", inside.Rates),
		newRow("the same without a sandbox", "MB/s", outside.Rates))
	return nil
}

// times are the output of client.
type times struct {
	Requests sample `json:"requests"`
	Rates    sample `json:"rates"`
}

// timesOf returns the output of a client in a sandbox.
func timesOf(program *runner.Program) (t times, err error) {
	stdin, stdout, stderr := program.Stdio()
	defer func() { err = errors.Join(err, program.Close(), stdin.Close(), stdout.Close(), stderr.Close()) }()
	go func() { _, _ = io.Copy(os.Stderr, stderr) }()
	text, err := io.ReadAll(stdout)
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	return t, err
}

// server is an MCP server that is started in a sandbox and by its usual launcher.
type server struct {
	name     string
	image    images.Image
	mount    runner.Mount
	args     []string // in the sandbox
	launcher []string
	dir      string // of the launcher
}

// servers measures the start and the memory of two MCP servers.
func (c *containedBench) servers(ctx context.Context) error {
	python, err := interpreter(ctx)
	if err != nil {
		return err
	}
	probes := filepath.Join(c.root, "test", "contained", "testdata")
	published := filepath.Join(c.root, "test", "servers")
	for _, s := range []server{
		{name: "Python", image: c.python, mount: runner.Mount{Source: probes, Target: "/srv/server", Live: true},
			args:     append(images.PythonArgs(), "/srv/server/probe.py"),
			launcher: []string{python, filepath.Join(probes, "probe.py")}},
		{name: "server-everything of npm", image: c.node,
			mount: runner.Mount{Source: published, Target: "/srv/server", Live: true},
			args: []string{"/usr/bin/node",
				"/srv/server/node_modules/@modelcontextprotocol/server-everything/dist/index.js"},
			launcher: []string{"npx", "--no-install", "mcp-server-everything"}, dir: published},
	} {
		if err := c.server(ctx, s); err != nil {
			return fmt.Errorf("measuring %s: %w", s.name, err)
		}
	}
	return nil
}

// server measures one server.
func (c *containedBench) server(ctx context.Context, s server) error {
	var started, direct, memory, directMemory sample
	for range min(c.rounds, containedRounds) {
		began := time.Now()
		program, err := c.start(ctx, s.image, nil, []runner.Mount{s.mount}, s.args...)
		if err != nil {
			return err
		}
		stdin, stdout, stderr := program.Stdio()
		go func() { _, _ = io.Copy(io.Discard, stderr) }()
		err = initialized(stdin, stdout)
		started = append(started, milliseconds(time.Since(began)))
		use, memoryErr := memoryOf(withAllBelow(family(), os.Getpid())[1:])
		memory = append(memory, use.proportional)
		err = errors.Join(err, memoryErr, program.Close(), stdin.Close(), stdout.Close(), stderr.Close())
		if err != nil {
			return err
		}
		took, used, err := s.launch(ctx)
		if err != nil {
			return err
		}
		direct, directMemory = append(direct, took), append(directMemory, used)
		if err := rest(ctx, roundPause); err != nil {
			return err
		}
	}
	launcher := filepath.Base(s.launcher[0])
	c.table.add(newRow("start of a contained server, "+s.name, "ms", started),
		newRow("start of the same server by "+launcher, "ms", direct),
		newRow("a contained server, "+s.name+", PSS", "MB", memory),
		newRow("the same server by "+launcher+", PSS", "MB", directMemory))
	return nil
}

// launch starts the server by its launcher and returns the milliseconds until it answered and its memory.
func (s server) launch(ctx context.Context) (took, memory float64, err error) {
	began := time.Now()
	plain := exec.CommandContext(ctx, s.launcher[0], s.launcher[1:]...)
	plain.Dir = s.dir
	in, inErr := plain.StdinPipe()
	out, outErr := plain.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		return 0, 0, err
	}
	if err := plain.Start(); err != nil {
		return 0, 0, err
	}
	err = initialized(in, out)
	took = milliseconds(time.Since(began))
	use, memoryErr := memoryOf(withAllBelow(family(), plain.Process.Pid))
	return took, use.proportional, errors.Join(err, memoryErr, in.Close(), plain.Wait())
}

// holder opens connections whose answers it does not read, until its input ends.
const holder = `import socket, sys
host, port = sys.argv[1].rsplit(":", 1)
held = []
for _ in range(int(sys.argv[2])):
    s = socket.create_connection((host, int(port)))
    s.sendall(b"GET /large HTTP/1.1\r\nHost: " + host.encode() + b"\r\n\r\n")
    s.recv(1)
    held.append(s)
print("open", flush=True)
sys.stdin.read()
`

// held is how many connections the stack's memory is measured with: as many as a run may have.
const held = 32

// stack measures the memory of network stacks in this process, with connections whose data nobody reads and without.
func (c *containedBench) stack(ctx context.Context, n *containedNetwork) error {
	before := memoryHere()
	var idle []*egress.Network
	for range held {
		ours, theirs, err := egress.Pair()
		if err != nil {
			return err
		}
		defer theirs.Close()
		network, err := egress.New(ours, &egress.Options{Hosts: []egress.Host{n.host}, Gate: permits{}})
		if err != nil {
			return err
		}
		defer network.Close()
		idle = append(idle, network)
	}
	each := (memoryHere() - before) / float64(len(idle))
	network, device, err := n.open()
	if err != nil {
		return err
	}
	defer network.Close()
	before = memoryHere()
	program, err := c.start(ctx, c.python, device, n.mounts, append(images.PythonArgs(), "-c", holder, n.host.String(),
		strconv.Itoa(held))...)
	_ = device.Device.Close()
	if err != nil {
		return err
	}
	stdin, stdout, stderr := program.Stdio()
	_, err = bufio.NewReader(stdout).ReadString('\n')
	full := memoryHere() - before
	c.table.add(newRow("the network stack of a sandbox", "MB", sample{each}),
		newRow(fmt.Sprintf("the same with %d connections whose data nobody reads", held), "MB", sample{each + full}))
	return errors.Join(err, stdin.Close(), program.Close(), stdout.Close(), stderr.Close())
}

// memoryHere returns the megabytes of this process's heap and stacks in use.
func memoryHere() float64 {
	runtime.GC()
	runtime.GC() // the memory that finalizers of the first one have freed
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse+m.StackInuse) / 1e6
}

// interpreter returns the path of this machine's Python, not of a script that selects one.
func interpreter(ctx context.Context) (string, error) {
	path, err := exec.CommandContext(ctx, "python3", "-c", "import sys; print(sys.executable, end='')").Output()
	return string(path), err
}

// initialized sends the first request of MCP and reads its answer.
func initialized(in io.Writer, out io.Reader) error {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}` + "\n"
	if _, err := io.WriteString(in, hello); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the server answered %.200q: %w", line, err)
	}
	return nil
}
