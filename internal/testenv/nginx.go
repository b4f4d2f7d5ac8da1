package testenv

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// StartNginx starts nginx with the content of its http block and waits until it listens at address. The files of nginx
// are in dir. stop ends nginx and returns what it has printed. If nginx is not installed, the error is
// exec.ErrNotFound.
func StartNginx(dir, address, block string) (stop func() string, err error) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		return nil, fmt.Errorf("%w (run `make nginx` first)", err)
	}
	var temporary strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&temporary, "%s_temp_path %s;\n", kind, filepath.Join(dir, kind))
	}
	text := fmt.Sprintf("daemon off;\nmaster_process off;\npid %s/pid;\nerror_log stderr warn;\nevents {}\nhttp {\n"+
		"access_log off;\n%s%s}\n", dir, temporary.String(), block)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	said := &Output{}
	command := exec.Command(program, "-p", dir, "-c", file, "-e", "stderr")
	command.Stderr = said
	if err := command.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait() // it is killed
	}()
	stop = func() string {
		_ = command.Process.Kill() // it may have ended
		<-ended
		return said.String()
	}
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return stop, conn.Close()
		}
		select {
		case <-ended:
			return nil, fmt.Errorf("nginx ended: %s", said)
		case <-time.After(20 * time.Millisecond): // between two attempts to connect
		}
	}
}
