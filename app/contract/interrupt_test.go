package contract_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// An interruption can come before what holds the output is there: nothing else may write the output after it.
func TestOutputIsWrittenByAnEarlyInterruption(t *testing.T) {
	const program = `const exit = process.reallyExit; // without what the guest does before it
const { holdOutput, writeAtOnce } = await import(process.argv[1] + "/output.mjs");
const { notice } = await import(process.argv[1] + "/interrupt.mjs");
writeAtOnce();
holdOutput({ tell: () => notice("internalMessage", { cmd: "NODE_DEBUG_ENABLED" }), settle() {} });
for (let i = 0; i < 40; i++) console.log(i);
exit.call(process, 0);`
	guest := filepath.Join(testenv.RepoRoot(t), "images", "node", "guest")
	node := exec.CommandContext(t.Context(), nodeProgram(t), "--input-type=module", "--eval", program, guest)
	if out, err := node.CombinedOutput(); err != nil || strings.Count(string(out), "\n") != 40 {
		t.Errorf("got %s, %v, want 40 lines", out, err)
	}
}

// The host's signal can come while the process ends. Node starts its inspector then, and aborts now and then.
func TestAnInterruptionAtTheEndDoesNothing(t *testing.T) {
	const program = `const exit = process.reallyExit, pause = new Int32Array(new SharedArrayBuffer(4));
process.reallyExit = () => {
	process.kill(process.pid, "SIGUSR1");
	Atomics.wait(pause, 0, 0, 200);
	exit.call(process, 0);
};
const { holdOutput, writeAtOnce } = await import(process.argv[1] + "/output.mjs");
writeAtOnce();
holdOutput({ tell() {}, settle() {} });
for (let i = 0; i < 40; i++) console.log(i);
process.reallyExit(0);`
	guest := filepath.Join(testenv.RepoRoot(t), "images", "node", "guest")
	node := exec.CommandContext(t.Context(), nodeProgram(t), "--input-type=module", "--eval", program, guest)
	if out, err := node.CombinedOutput(); err != nil || strings.Count(string(out), "\n") != 40 {
		t.Errorf("got %s, %v, want 40 lines and no inspector", out, err)
	}
}

// The host's signal can come before the guest's request for it has returned.
func TestAnInterruptionCanComeAtOnce(t *testing.T) {
	const program = `const { ask, listen, notice } = await import(process.argv[1]);
let heard = 0;
const interrupt = () => notice("internalMessage", { cmd: "NODE_DEBUG_ENABLED" });
listen({ tell: interrupt, settle() {} }, () => heard++);
ask();
const hidden = interrupt();
process.stdout.write(JSON.stringify([heard, hidden]));`
	guest := filepath.Join(testenv.RepoRoot(t), "images", "node", "guest", "interrupt.mjs")
	node := exec.CommandContext(t.Context(), nodeProgram(t), "--input-type=module", "--eval", program, guest)
	if out, err := node.CombinedOutput(); err != nil || string(out) != "[2,true]" {
		t.Errorf("got %s, %v, want both interruptions to be noticed", out, err)
	}
}
