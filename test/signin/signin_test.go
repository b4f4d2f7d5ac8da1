package signin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// airlock is the real program with a separate state directory.
type airlock struct {
	program, configuration, home string
	said                         *testenv.Output // what all of its processes print to stderr
}

func newAirlock(t *testing.T, n *notes) *airlock {
	t.Helper()
	env := testenv.OwnHome(t, "python")
	a := &airlock{
		program:       filepath.Join(testenv.RepoRoot(t), "bin", "airlock"),
		configuration: filepath.Join(t.TempDir(), "airlock.yaml"),
		home:          env.Home, said: &testenv.Output{},
	}
	text := fmt.Sprintf(
		"mcpServers: {notes: {url: %q}}\nservers: {notes: {trustAnnotations: true, oauth: {clientId: "+
			"airlock}}}\nreplay: {keep: 1h}\naudit: {clearArguments: true}\n", n.url)
	if err := os.WriteFile(a.configuration, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *airlock) command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, a.program, append(args, "--config", a.configuration)...)
	command.Stderr = a.said
	return command
}

// login signs in. It calls answer with the last address of the browser and the program's
// stdin, in place of a person.
func (a *airlock) login(t *testing.T, answer func(address string, stdin io.Writer) error, more ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := a.command(ctx, append([]string{"login", "notes", "--no-browser", "--json"}, more...)...)
	reader, writer := io.Pipe()
	command.Stderr = io.MultiWriter(a.said, writer)
	var stdout bytes.Buffer
	command.Stdout = &stdout
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(reader)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "http") {
				answered <- answer(browse(t, lines.Text()), stdin)
			}
		}
	}()
	failed := command.Wait()
	writer.Close()
	if err := testenv.Receive(t, "a sign-in in the browser", answered); err != nil || failed != nil {
		t.Fatalf("login: %v, %v\n%s", failed, err, a.said)
	}
	var got struct {
		SignedIn bool `json:"signed_in"`
		Renews   bool
		Tools    int
	}
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil || !got.SignedIn || !got.Renews || got.Tools != 1 {
		t.Errorf("login: got %s, %v", stdout.Bytes(), err)
	}
}

// follows is a browser on the same machine, pastes one on another.
func follows(address string, _ io.Writer) error {
	response, err := http.Get(address)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func pastes(address string, stdin io.Writer) error {
	_, err := io.WriteString(stdin, "http://example.com/\n"+address+"\n")
	return err
}

// host starts airlock mcp for a client.
func (a *airlock) host(t *testing.T) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: a.command(context.Background(), "mcp")},
		nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, a.said)
	}
	t.Cleanup(func() { session.Close() }) // the second time it is closed already
	return session
}

const whoami = "from servers.notes import whoami\nr = (await whoami({})).structured_content\nresult = [r['who'], " +
	"r['echo']]"

// ran is how a program ended.
type ran struct {
	OK    bool
	Data  []string
	Error struct {
		Type, Message string
		Retryable     bool
	}
}

// whoamiTwice makes two calls at the same time in a nested function.
const whoamiTwice = "import asyncio\nfrom servers.notes import whoami\nasync def both():\n" +
	"    return await asyncio.gather(whoami({}), whoami({}))\n" +
	"result = [r.structured_content['who'] for r in await both()]"

func run(t *testing.T, host *mcp.ClientSession) (ran, string) { return runProgram(t, host, whoami) }

func runProgram(t *testing.T, host *mcp.ClientSession, code string) (ran, string) {
	t.Helper()
	result, err := host.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_code",
		Arguments: map[string]any{"language": "python", "code": code}})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	var whole struct{ StructuredContent ran }
	if err := json.Unmarshal(raw, &whole); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return whole.StructuredContent, string(raw)
}

func search(t *testing.T, host *mcp.ClientSession) string {
	t.Helper()
	result, err := host.CallTool(t.Context(), &mcp.CallToolParams{Name: "search_tools",
		Arguments: map[string]any{"query": "who calls"}})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// wantsSignIn runs the program until it reports that a sign-in is needed.
func wantsSignIn(t *testing.T, host *mcp.ClientSession) {
	t.Helper()
	got, raw := run(t, host)
	if got.OK || !strings.Contains(got.Error.Message, "airlock login notes") || got.Error.Retryable {
		t.Errorf("got %s, want an error that names the command and that is not worth another try", raw)
	}
}

// works runs the program, again while a running Airlock takes notice of a sign-in.
func works(t *testing.T, host *mcp.ClientSession) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		got, raw := run(t, host)
		if got.OK && len(got.Data) == 2 && got.Data[0] == "id1" {
			if strings.Contains(got.Data[1], "Bearer") && !strings.Contains(got.Data[1], "REDACTED") &&
				!strings.Contains(strings.ToLower(got.Data[1]), "redacted") {
				t.Errorf("the code saw what the server was sent: %s", raw)
			}
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("got %s, want the user of the sign-in\n", raw)
		}
	}
}

// C-082, C-084, C-085, C-087: sign-in, calls, refresh, revocation and restarts, with the
// real program.
func TestSigningInAtAnOpenIDProvider(t *testing.T) {
	testenv.Sandbox(t)
	provider := startProvider(t)
	server := startNotes(t, provider)
	program := newAirlock(t, server)
	host := program.host(t)

	if found := search(t, host); !strings.Contains(found, "airlock login notes") {
		t.Errorf("before the sign-in, a search finds %s, want what the user has to do", found)
	}
	program.login(t, follows)
	works(t, host)

	first := server.newest()
	provider.revoke(t, first)
	works(t, host)
	if second := server.newest(); second == first {
		t.Error("a revoked token was used again, want one that was refreshed")
	}

	provider.again(t) // and no refresh token is good any more
	wantsSignIn(t, host)
	wantsSignIn(t, host)
	if found := search(t, host); !strings.Contains(found, "whoami") {
		t.Errorf("the tools are not listed any more: %s", found)
	}
	program.login(t, pastes)
	works(t, host)

	if err := host.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	host = program.host(t)
	works(t, host)

	last := server.newest()
	if out, err := program.command(t.Context(), "logout", "notes").Output(); err != nil ||
		!strings.Contains(string(out), "signed out of notes") {
		t.Errorf("logout: got %s, %v\n%s", out, err, program.said)
	}
	if who := provider.subject(t.Context(), last); who != "" {
		t.Errorf("after the logout the token is still good, for %q", who)
	}
	wantsSignIn(t, host)
	if err := host.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	leaksNothing(t, program, server.all())
}

// leaksNothing looks for tokens in everything that Airlock has written.
func leaksNothing(t *testing.T, a *airlock, tokens []string) {
	t.Helper()
	if len(tokens) < 3 {
		t.Fatalf("got %d tokens, want more to look for", len(tokens))
	}
	files := 0
	err := filepath.WalkDir(a.home, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		files++
		for _, token := range tokens {
			if bytes.Contains(text, []byte(token)) {
				t.Errorf("%q holds a token", path)
			}
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("got %d files, %v", files, err)
	}
	for _, token := range tokens {
		if strings.Contains(a.said.String(), token) {
			t.Error("a token was printed")
		}
	}
}
