package runner

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

const (
	gvisorKernel = "Linux version 4.19.0-gvisor #1 SMP Sun Jan 10 15:06:54 PST 2016\n"
	noDevices    = "Inter-|   Receive                            |  Transmit\n face |bytes    packets errs drop fifo " +
		"frame |bytes    packets errs\n"
	loopback = noDevices + "    lo:       0       0    0    0    0     0 |      0       0    0\n"
)

func TestJudge(t *testing.T) {
	for name, test := range map[string]struct {
		said, want string
		network    bool
	}{
		"gVisor and loopback": {gvisorKernel + loopback, "", false},
		"another kernel":      {"Linux version 6.18.44 (gcc)\n" + loopback, "not answered by gVisor", false},
		"gVisor's name elsewhere": {"Linux version 6.18.44 (gcc)\ngvisor\n" + loopback, "not answered by gVisor",
			false},
		"a network device": {gvisorKernel + loopback + "  eth0: 0 0 0\n", `the network devices ["lo" "eth0"]`,
			false},
		"a network device alone": {gvisorKernel + noDevices + "  eth0: 0 0 0\n", `the network devices ["eth0"]`,
			false},
		"no network devices at all": {gvisorKernel + noDevices, "the network devices []", false},
		"nothing of the network":    {gvisorKernel, "the network devices []", false},
		"an expected device":        {gvisorKernel + loopback + "  eth0: 0 0 0\n", "", true},
		"another device":            {gvisorKernel + loopback + "  eth1: 0 0 0\n", `["lo" "eth1"]`, true},
		"no device":                 {gvisorKernel + loopback, `the network devices ["lo"]`, true},
		"nothing":                   {"", "not answered by gVisor", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkGreeting(test.said, test.network)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestReadGreeting(t *testing.T) {
	for name, test := range map[string]struct{ written, said, fails, rest string }{
		"a proof":                  {gvisorKernel + loopback + "ready\nresult", gvisorKernel + loopback, "", "result"},
		"no proof":                 {"ready\nready\n", "", "", "ready\n"},
		"a line that ends so":      {"Linux version already\nrest", "Linux version al", "", "rest"},
		"what looks like the line": {"Linux version rereadready\nready", "Linux version reread", "", "ready"},
		"something else": {"Traceback (most recent call last)\nready\n", "", "instead of its ready line",
			"ack (most recent call last)\nready\n"},
		"an end before it": {gvisorKernel + loopback, "", "ended before it was ready", ""},
		"an end within it": {gvisorKernel + "read", "", "ended before it was ready", ""},
		"nothing":          {"", "", "ended before it was ready", ""},
		"more than a guest may say": {anyKernel + strings.Repeat("x", 2*maxGreeting) + "ready\n", "",
			"instead of its ready line", strings.Repeat("x", maxGreeting)},
	} {
		for way, as := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader,
		} {
			t.Run(name+", "+way, func(t *testing.T) {
				written := strings.NewReader(test.written)
				said, err := readGreeting(as(written))
				if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
					t.Errorf("got %v, want %q", err, test.fails)
				}
				rest, _ := io.ReadAll(written)
				if said != test.said || !strings.HasPrefix(string(rest), test.rest) || err == nil &&
					string(rest) != test.rest {
					t.Errorf("got %q and %q left, want %q and %q", said, rest, test.said, test.rest)
				}
			})
		}
	}
}

// FuzzGreeting holds that the first ready line ends what is read, whatever stands
// before and behind it, and that judging it never fails otherwise than by an error.
func FuzzGreeting(f *testing.F) {
	f.Add(gvisorKernel+loopback, "result")
	f.Add("Linux version rerearead", "y\nready\n")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, before, behind string) {
		stream := strings.NewReader(before + readyLine + behind)
		said, err := readGreeting(stream)
		if err != nil {
			return
		}
		rest, _ := io.ReadAll(stream)
		want, wantRest, _ := strings.Cut(before+readyLine+behind, readyLine)
		if said != want || string(rest) != wantRest {
			t.Errorf("got %q and %q left, want %q and %q", said, rest, want, wantRest)
		}
		_ = checkGreeting(said, true)
	})
}
