package brokerfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// kernel plays gVisor's side.
type kernel struct {
	t    *testing.T
	conn *net.UnixConn
}

// start serves a kernel whose broker writes hello on each connection.
func start(t *testing.T) (*Server, kernel) {
	t.Helper()
	path := filepath.Join(t.TempDir(), SocketName)
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "hello")
			conn.Close()
		}
	}()
	s, theirs, err := Start(func() (int, error) {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return -1, err
		}
		return fd, unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.FileConn(theirs)
	theirs.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); s.Close() })
	return s, kernel{t, conn.(*net.UnixConn)}
}

// ask makes one request over the socket.
func (k kernel) ask(kind uint16, payload []byte) message {
	k.t.Helper()
	if err := writeMessage(k.conn, message{kind: kind, payload: payload}); err != nil {
		k.t.Fatal(err)
	}
	buffer, rights := make([]byte, socketHeader+maxMessage), make([]byte, 256)
	n, oobn, _, _, err := k.conn.ReadMsgUnix(buffer, rights)
	if err != nil {
		k.t.Fatal(err)
	}
	m, err := readMessage(bytes.NewReader(buffer[:n]), make([]byte, len(buffer)))
	if err != nil {
		k.t.Fatal(err)
	}
	m.fds = received(k.t, rights[:oobn])
	return m
}

func received(t *testing.T, rights []byte) []int {
	t.Helper()
	controls, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		t.Fatal(err)
	}
	var fds []int
	for _, c := range controls {
		got, err := unix.ParseUnixRights(&c)
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, got...)
	}
	return fds
}

func (k kernel) wantError(what string, m message, want unix.Errno) {
	k.t.Helper()
	if m.kind != kindError || len(m.payload) != 4 || unix.Errno(binary.LittleEndian.Uint32(m.payload)) != want {
		k.t.Errorf("%s: got kind %d, %v, want error %v", what, m.kind, m.payload, want)
	}
}

func request(fd uint64, names ...string) []byte {
	payload := encode(fd, uint16(len(names)))
	for _, name := range names {
		payload = append(payload, encode(uint16(len(name)), []byte(name))...)
	}
	return payload
}

func TestMountTellsTheRoot(t *testing.T) {
	_, k := start(t)
	m := k.ask(kindMount, nil)
	var answer struct {
		Root  inode
		Max   uint32
		Kinds uint16
	}
	if err := decode(m.payload, &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Root.FD != rootFD || answer.Root.Stat.Mode != unix.S_IFDIR|0o555 || answer.Max != maxMessage {
		t.Errorf("got %+v, want the root", answer)
	}
	if len(m.payload) != binary.Size(answer)+2*int(answer.Kinds) {
		t.Errorf("payload: got %d bytes for %d kinds", len(m.payload), answer.Kinds)
	}
}

func TestWalk(t *testing.T) {
	_, k := start(t)
	tests := []struct {
		name   string
		from   uint64
		names  []string
		status byte
		found  byte
	}{
		{"the socket", rootFD, []string{SocketName}, walked, 1},
		{"another name", rootFD, []string{"other"}, missing, 0},
		{"upwards", rootFD, []string{".."}, missing, 0},
		{"through the socket", rootFD, []string{SocketName, "x"}, missing, 1},
		{"from the socket", socketFD, []string{SocketName}, missing, 0},
		{"from nowhere", 99, []string{SocketName}, missing, 0},
		{"a path", rootFD, []string{"../../etc/passwd"}, missing, 0},
		{"nothing", rootFD, nil, walked, 0},
	}
	for _, test := range tests {
		m := k.ask(kindWalk, request(test.from, test.names...))
		if m.kind != kindWalk || m.payload[0] != test.status || m.payload[1] != test.found {
			t.Errorf("%s: got %v, want status %d and %d inodes", test.name, m.payload, test.status, test.found)
		}
	}
	if m := k.ask(kindWalkStat, request(rootFD, "", SocketName)); binary.LittleEndian.Uint16(m.payload) != 2 {
		t.Errorf("stats of the root and the socket: got %v", m.payload)
	}
}

func TestRefusals(t *testing.T) {
	_, k := start(t)
	open := func(fd uint64, flags uint32) []byte { return encode(fd, flags, uint32(0)) }
	connect := func(fd uint64, kind uint32) []byte { return encode(fd, kind, uint32(0)) }
	tests := []struct {
		name    string
		kind    uint16
		payload []byte
		want    unix.Errno
	}{
		{"opening the directory to write", kindOpenAt, open(rootFD, unix.O_RDWR), unix.EROFS},
		{"opening the socket", kindOpenAt, open(socketFD, unix.O_RDONLY), unix.ENXIO},
		{"opening nothing", kindOpenAt, open(7, unix.O_RDONLY), unix.EBADF},
		{"making a directory", 13, request(rootFD, "x"), unix.EOPNOTSUPP},
		{"making a link", 15, request(rootFD, "x"), unix.EOPNOTSUPP},
		{"removing", 22, request(rootFD, SocketName), unix.EOPNOTSUPP},
		{"renaming", 23, request(rootFD, SocketName), unix.EOPNOTSUPP},
		{"binding", 29, request(rootFD, "x"), unix.EOPNOTSUPP},
		{"an unknown kind", 4711, nil, unix.EOPNOTSUPP},
		{"the stat of nothing", kindFStat, encode(uint64(8)), unix.EBADF},
		{"half a stat", kindFStat, []byte{1}, unix.EIO},
		{"listing what is not open", kindGetdents64, encode(uint64(rootFD), int32(-100), int32(0)), unix.EBADF},
		{"a datagram socket", kindConnect, connect(socketFD, unix.SOCK_DGRAM), unix.EPROTOTYPE},
		{"connecting to the directory", kindConnect, connect(rootFD, unix.SOCK_STREAM), unix.ECONNREFUSED},
		{"half a walk", kindWalk, []byte{1, 0, 0}, unix.EIO},
		{"a walk of more names than there are", kindWalk, append(encode(uint64(rootFD)), 0xff, 0xff), unix.EIO},
	}
	for _, test := range tests {
		k.wantError(test.name, k.ask(test.kind, test.payload), test.want)
	}
}

func TestListing(t *testing.T) {
	_, k := start(t)
	m := k.ask(kindOpenAt, encode(uint64(rootFD), uint32(unix.O_RDONLY|unix.O_DIRECTORY), uint32(0)))
	fd := binary.LittleEndian.Uint64(m.payload)
	m = k.ask(kindGetdents64, encode(fd, int32(-1000), int32(0)))
	if binary.LittleEndian.Uint16(m.payload) != 1 || !bytes.HasSuffix(m.payload, []byte(SocketName)) {
		t.Errorf("got %q, want the socket", m.payload)
	}
	if m = k.ask(kindGetdents64, encode(fd, int32(1000), int32(0))); binary.LittleEndian.Uint16(m.payload) != 0 {
		t.Errorf("the rest: got %q, want nothing", m.payload)
	}
}

func TestConnectOverTheSocket(t *testing.T) {
	_, k := start(t)
	m := k.ask(kindConnectWithCreds, encode(uint64(socketFD), uint32(unix.SOCK_STREAM), uint32(0), uint32(65532),
		uint32(65532)))
	if m.kind != kindConnectWithCreds || len(m.fds) != 1 {
		t.Fatalf("got %+v, want one descriptor", m)
	}
	wantHello(t, m.fds[0])
}

func wantHello(t *testing.T, fd int) {
	t.Helper()
	file := os.NewFile(uintptr(fd), "broker")
	defer file.Close()
	got, err := io.ReadAll(file)
	if err != nil || string(got) != "hello" {
		t.Errorf("the broker: got %q, %v, want hello", got, err)
	}
}

// peer is the kernel's end of a channel.
type peer struct {
	*channel
}

func openPeer(t *testing.T, k kernel) peer {
	t.Helper()
	m := k.ask(kindChannel, nil)
	if m.kind != kindChannel || len(m.fds) != 2 {
		t.Fatalf("got %+v, want a channel with two descriptors", m)
	}
	window, err := unix.Mmap(m.fds[0], 0, windowSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(m.fds[0], 0); err == nil {
		t.Error("the peer could shrink the shared memory")
	}
	unix.Close(m.fds[0])
	p := peer{&channel{window: window, rights: m.fds[1]}}
	t.Cleanup(func() {
		unix.Close(p.rights)
		if err := unix.Munmap(p.window); err != nil {
			t.Error(err)
		}
	})
	p.length().Store(uint32(copy(window[windowHeader:], greeting)))
	p.yield()
	if got := string(window[windowHeader : windowHeader+p.length().Load()]); got != greeting {
		t.Fatalf("greeting: got %q, want %q", got, greeting)
	}
	return p
}

// yield gives the turn to the server and waits to have it back.
func (p peer) yield() bool {
	p.state().Store(turnServer)
	p.futex(futexWake, 1)
	for p.state().Load() == turnServer {
		p.futex(futexWait, turnServer)
	}
	return p.state().Load() == turnKernel
}

func (p peer) ask(kind uint16, payload []byte) message {
	data := p.window[windowHeader:]
	binary.LittleEndian.PutUint16(data, kind)
	p.length().Store(uint32(channelHeader + copy(data[channelHeader:], payload)))
	if !p.yield() {
		return message{}
	}
	m := message{kind: binary.LittleEndian.Uint16(data), payload: bytes.Clone(data[channelHeader:p.length().Load()])}
	for range data[2] {
		rights := make([]byte, 64)
		_, n, _, _, err := unix.Recvmsg(p.rights, nil, rights, 0)
		if err != nil {
			return message{}
		}
		controls, err := unix.ParseSocketControlMessage(rights[:n])
		if err != nil || len(controls) != 1 {
			return message{}
		}
		fds, err := unix.ParseUnixRights(&controls[0])
		if err != nil {
			return message{}
		}
		m.fds = append(m.fds, fds...)
	}
	return m
}

func TestChannel(t *testing.T) {
	_, k := start(t)
	p := openPeer(t, k)
	k.wantError("a second channel", k.ask(kindChannel, nil), unix.ENOMEM)
	if m := p.ask(kindWalk, request(rootFD, SocketName)); m.kind != kindWalk || m.payload[1] != 1 {
		t.Errorf("walking: got %+v, want the socket", m)
	}
	for range 3 {
		m := p.ask(kindConnect, encode(uint64(socketFD), uint32(unix.SOCK_STREAM), uint32(0)))
		if m.kind != kindConnect || len(m.fds) != 1 {
			t.Fatalf("connecting: got %+v, want one descriptor", m)
		}
		wantHello(t, m.fds[0])
	}
}

func TestChannelEndsAtNonsense(t *testing.T) {
	for name, length := range map[string]uint32{"too short": 1, "too long": windowSize, "absurd": 1 << 31} {
		t.Run(name, func(t *testing.T) {
			_, k := start(t)
			p := openPeer(t, k)
			p.length().Store(length)
			if p.yield() {
				t.Error("the server went on")
			}
			if m := k.ask(kindMount, nil); m.kind != kindMount {
				t.Errorf("the socket: got %+v, want an answer still", m)
			}
		})
	}
}

func TestSocketEndsAtNonsense(t *testing.T) {
	_, k := start(t)
	if _, err := k.conn.Write([]byte{0xff, 0xff, 0xff, 0x7f, 1, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	if n, err := k.conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after a message of 2 GiB: got %d bytes, %v, want the end", n, err)
	}
}

func TestCloseEndsAChannelThatWaits(t *testing.T) {
	s, k := start(t)
	openPeer(t, k)
	s.Close() // waits for the goroutine, which sleeps on the futex
	s.Close()
}

func FuzzHandle(f *testing.F) {
	f.Add(uint16(kindWalk), request(rootFD, SocketName))
	f.Add(uint16(kindConnect), encode(uint64(socketFD), uint32(1), uint32(0)))
	f.Add(uint16(kindGetdents64), encode(uint64(listFD), int32(-1), int32(0)))
	s := &Server{dial: func() (int, error) { return unix.Dup(0) }, closed: true}
	f.Fuzz(func(t *testing.T, kind uint16, payload []byte) {
		if len(payload) > maxMessage {
			payload = payload[:maxMessage]
		}
		m := s.handle(message{kind: kind, payload: payload})
		closeFDs(m.fds)
		if m.kind != kind && m.kind != kindError || len(m.payload) > maxMessage {
			t.Errorf("got an answer of kind %d and %d bytes to one of kind %d", m.kind, len(m.payload), kind)
		}
	})
}
