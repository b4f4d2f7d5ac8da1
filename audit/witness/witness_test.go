package witness

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const someNote = "airlock-audit/x\n12\nAAAA\n\n— airlock-audit/x BBBB\n"

func TestOpen(t *testing.T) {
	key := "w+6f9d50b5+BAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	tests := []struct {
		address, key string
		want         string // empty: it is one
	}{
		{"/var/witness", "", ""},
		{"file:///var/witness", "", ""},
		{"syslog+unix:///dev/log", "", ""},
		{"syslog+udp://127.0.0.1:514", "", ""},
		{"syslog+tcp://[::1]:601", "", ""},
		{"witness", "", "not one of"},
		{"file://host/witness", "", "not one of"},
		{"syslog+udp://127.0.0.1", "", "not one of"},
		{"syslog://127.0.0.1:514", "", "not one of"},
		{"ftp://host/x", "", "not one of"},
		{"/var/witness", key, "only an HTTP witness"},
		{"https://witness.example/", "", "public key"},
		{"https://witness.example/", key, "does not fit"},
		{"https://", key, "no host"},
		{"https://user:secret@host/", "bad", "public key"},
	}
	for _, test := range tests {
		_, err := Open(test.address, test.key)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: got %v, want %q", test.address, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the password is in %v", test.address, err)
		}
	}
}

func TestFileIsAppendedTo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w")
	w, err := Open(path, "")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := w.Submit(t.Context(), Checkpoint{Size: 12, Note: []byte(someNote)}); err != nil {
			t.Fatal(err)
		}
	}
	// A full disk left half a note.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, "airlock-audit/x\n13")
	f.Close()
	if _, err := w.Submit(t.Context(), Checkpoint{Size: 12, Note: []byte(someNote)}); err != nil {
		t.Fatal(err)
	}
	whole := 0
	notes, err := Stored(path, "airlock-audit/")
	for _, n := range notes {
		if string(n) == someNote {
			whole++
		}
	}
	if err != nil || whole != 3 {
		t.Errorf("got %q, %v, want three whole notes", notes, err)
	}
}

var message = regexp.MustCompile(
	`^<110>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z \S+ airlock \d+ audit-checkpoint - size=12 note=\S+$`)

func TestSyslog(t *testing.T) {
	dir := t.TempDir()
	streams := map[string]func() (net.Listener, string){
		"tcp": func() (net.Listener, string) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			return l, "syslog+tcp://" + l.Addr().String()
		},
		"unix": func() (net.Listener, string) {
			path := filepath.Join(dir, "stream")
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			return l, "syslog+unix://" + path
		},
	}
	for name, listen := range streams {
		t.Run(name, func(t *testing.T) {
			l, address := listen()
			defer l.Close()
			got := make(chan string, 1)
			go func() {
				conn, err := l.Accept()
				if err != nil {
					got <- err.Error()
					return
				}
				defer conn.Close()
				in := bufio.NewReader(conn)
				var n int
				fmt.Fscanf(in, "%d ", &n)
				text, _ := io.ReadAll(in)
				if len(text) != n {
					got <- fmt.Sprintf("%d bytes announced, %d came", n, len(text))
					return
				}
				got <- string(text)
			}()
			checkSyslog(t, address, got)
		})
	}
	packets := map[string]func() (net.PacketConn, string){
		"udp": func() (net.PacketConn, string) {
			c, err := net.ListenPacket("udp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			return c, "syslog+udp://" + c.LocalAddr().String()
		},
		"unixgram": func() (net.PacketConn, string) {
			path := filepath.Join(dir, "datagram")
			c, err := net.ListenPacket("unixgram", path)
			if err != nil {
				t.Fatal(err)
			}
			return c, "syslog+unix://" + path
		},
	}
	for name, listen := range packets {
		t.Run(name, func(t *testing.T) {
			c, address := listen()
			defer c.Close()
			got := make(chan string, 1)
			go func() {
				text := make([]byte, 4096)
				n, _, err := c.ReadFrom(text)
				if err != nil {
					got <- err.Error()
					return
				}
				got <- string(text[:n])
			}()
			checkSyslog(t, address, got)
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		w, err := Open("syslog+unix://"+filepath.Join(dir, "nobody"), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Submit(t.Context(), Checkpoint{Note: []byte(someNote)}); err == nil {
			t.Error("got nil, want an error")
		}
	})
}

// checkSyslog sends a checkpoint, and reads it back from what a server would store.
func checkSyslog(t *testing.T, address string, got <-chan string) {
	t.Helper()
	w, err := Open(address, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Submit(t.Context(), Checkpoint{Size: 12, Note: []byte(someNote)}); err != nil {
		t.Fatal(err)
	}
	text := <-got
	if !message.MatchString(text) {
		t.Errorf("got %q, want a message of RFC 5424", text)
	}
	if notes := stored([]byte("Nov 21 10:00:00 host "+text+"\nother\n"), "airlock-audit/"); len(notes) != 1 ||
		!bytes.Equal(notes[0], []byte(someNote)) {
		t.Errorf("read back: got %q", notes)
	}
}
