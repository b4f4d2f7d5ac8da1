package main

import (
	"bufio"
	"io"
	"syscall"
	"testing"
)

// When its terminal closes, the program ends in order and removes its sandboxes.
func TestAHangupEndsTheProgramInOrder(t *testing.T) {
	cmd := newInstall(t).command(trusted)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	if _, err := io.WriteString(stdin, hello+"\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // how it ended is looked at next
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Exited() {
		t.Errorf("the signal killed it: %v", cmd.ProcessState)
	}
}
