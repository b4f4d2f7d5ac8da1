package team

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// person is one at a real Chromium, which test/console's driver drives.
type person struct {
	t   *testing.T
	in  *json.Encoder
	out *bufio.Scanner
}

func atBrowser(t *testing.T) *person {
	t.Helper()
	chromium, node := testenv.Browser(t)
	command := exec.Command(node, filepath.Join(testenv.RepoRoot(t), "test", "console", "drive.mjs"), chromium)
	var said strings.Builder
	command.Stderr = &said
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("the browser: %v\n%s", err, said.String())
		}
	})
	p := &person{t, json.NewEncoder(stdin), bufio.NewScanner(stdout)}
	p.out.Buffer(nil, 64<<20)
	p.does("profile", nil)
	return p
}

// does takes one step of the driver, which waits for what it needs.
func (p *person) does(step string, options map[string]string) (value json.RawMessage) {
	p.t.Helper()
	request := map[string]string{"step": step}
	for name, option := range options {
		request[name] = option
	}
	if err := p.in.Encode(request); err != nil || !p.out.Scan() {
		p.t.Fatalf("%s %v: the browser has ended: %v", step, options, err)
	}
	var answer struct {
		Error, Shown string
		Value        json.RawMessage
	}
	if err := json.Unmarshal(p.out.Bytes(), &answer); err != nil || answer.Error != "" {
		p.t.Fatalf("%s %v: %v %s, shown is\n%s", step, options, err, answer.Error, answer.Shown)
	}
	return answer.Value
}

func (p *person) opens(address string) {
	p.t.Helper()
	p.does("open", map[string]string{"address": address})
}
func (p *person) fills(label, with string) {
	p.t.Helper()
	p.does("fill", map[string]string{"label": label, "value": with})
}
func (p *person) clicks(role, name string) {
	p.t.Helper()
	p.does("click", map[string]string{"role": role, "name": name})
}
func (p *person) sees(text string) { p.t.Helper(); p.does("sees", map[string]string{"text": text}) }
