package runner

import (
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	const kernel = "Linux version 4.19.0-gvisor #1 SMP Sun Jan 10 15:06:54 PST 2016\n"
	for name, test := range map[string]struct{ wrote, want string }{
		"gVisor and loopback":       {kernel + "lo:\n", ""},
		"another kernel":            {"Linux version 6.18.44 (gcc)\nlo:\n", "not answered by gVisor"},
		"a network device":          {kernel + "lo:\neth0:\n", `the network devices "lo:\neth0:"`},
		"no network devices at all": {kernel, `the network devices ""`},
		"nothing":                   {"", "not answered by gVisor"},
	} {
		t.Run(name, func(t *testing.T) {
			err := judge(test.wrote)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
