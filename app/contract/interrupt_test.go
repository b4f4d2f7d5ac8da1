package contract_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Node's guest has time to ask for an interruption, but the host's signal can come before the request has returned.
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
