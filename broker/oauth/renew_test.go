package oauth_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// signedIn returns a world and a source whose user has signed in.
func signedIn(t *testing.T) (*world, *oauth.Source, *testenv.Clock, string) {
	t.Helper()
	w, c, directory := newWorld(t), testenv.NewClock(time.Now()), t.TempDir()
	s := source(t, w, directory, c, nil)
	if _, err := s.Login(t.Context(), &person{}, nil); err != nil {
		t.Fatal(err)
	}
	return w, s, c, directory
}

// refused reports a response to a request with a token to the source.
func refused(t *testing.T, s *oauth.Source, w *world, token string, status int, challenge string) (bool, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return s.Bind().Refused(t.Context(), request, &http.Response{StatusCode: status,
		Header: http.Header{"Www-Authenticate": {challenge}}})
}

func wantSignIn(t *testing.T, err error, why, command string) {
	t.Helper()
	var needed *upstream.SignInError
	if !errors.As(err, &needed) || !strings.Contains(needed.Why, why) || needed.Command != command {
		t.Errorf("got %#v, want %q and the command %q", err, why, command)
	}
}

func TestATokenIsRefreshedAheadOfItsEnd(t *testing.T) {
	w, s, c, directory := signedIn(t)
	for _, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, "Bearer access-token-1"},
		{54 * time.Minute, "Bearer access-token-1"},
		{2 * time.Minute, "Bearer access-token-2"}, // four minutes before its end
		{2 * time.Hour, "Bearer access-token-3"},
	} {
		c.Advance(step.after)
		if got, err := signed(t, s, w.url()); got != step.want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, step.want)
		}
	}
	form := w.forms[len(w.forms)-1]
	if form.Get("refresh_token") != "refresh-token-2" || form.Get("resource") != w.url() ||
		form.Get("client_id") != "client-of-airlock" {
		t.Errorf("got %v, want the rotated token, the resource and the client", form)
	}
	if got, err := signed(t, source(t, w, directory, c, nil), w.url()); got != "Bearer access-token-3" || err != nil {
		t.Errorf("after a restart: got %q, %v", got, err)
	}
}

// Two sources of one directory are as two processes: only the turn is between them.
func TestOneRefreshAtATime(t *testing.T) {
	w, s, c, directory := signedIn(t)
	other := source(t, w, directory, c, nil)
	c.Advance(2 * time.Hour)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			if got, err := signed(t, []*oauth.Source{s, other}[i%2], w.url()); got != "Bearer access-token-2" ||
				err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	all.Wait()
	if len(w.forms) != 2 {
		t.Errorf("got %d token requests, want one for the sign-in and one refresh", len(w.forms))
	}
}

func TestARefreshTokenThatIsDead(t *testing.T) {
	w, s, c, directory := signedIn(t)
	w.mu.Lock()
	clear(w.refresh) // revoked
	w.mu.Unlock()
	c.Advance(2 * time.Hour)
	for range 3 {
		_, err := signed(t, s, w.url())
		wantSignIn(t, err, "no longer accepts it", "airlock login crm")
	}
	_, err := signed(t, source(t, w, directory, c, nil), w.url())
	wantSignIn(t, err, "no longer accepts it", "airlock login crm")
	if len(w.forms) != 2 {
		t.Errorf("got %d token requests, want 2: what is dead is not asked about again", len(w.forms))
	}
	if state, err := s.State(); err != nil || state.IsSignedIn || state.Over == "" {
		t.Errorf("got %+v, %v", state, err)
	}
	// A sign-in by another process is all that it takes.
	if _, err := source(t, w, directory, c, nil).Login(t.Context(), &person{}, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := signed(t, s, w.url()); got != "Bearer access-token-2" || err != nil {
		t.Errorf("after the sign-in: got %q, %v", got, err)
	}
}

func TestWhatARefreshIsAnswered(t *testing.T) {
	tests := []struct {
		name   string
		status int
		code   string
		over   bool
	}{
		{"invalid_grant", 400, "invalid_grant", true},
		{"the client is gone", 401, "invalid_client", true},
		{"an error that came with 200, as some servers do", 200, "bad_refresh_token", true},
		{"a gateway's page", 400, "", false},
		{"too many requests", 429, "slow_down", false},
		{"it fails", 500, "server_error", false},
		{"it is busy", 400, "temporarily_unavailable", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w, s, c, _ := signedIn(t)
			w.token = func(_ url.Values, answer map[string]any) int {
				clear(answer)
				if test.code != "" {
					answer["error"], answer["error_description"] = test.code, "refresh-token-1 is unknown"
				}
				return test.status
			}
			c.Advance(2 * time.Hour)
			_, err := signed(t, s, w.url())
			state, stateErr := s.State()
			if err == nil || stateErr != nil || (state.Over != "") != test.over {
				t.Errorf("got %v and %+v (%v), want the sign-in to be over: %t", err, state, stateErr, test.over)
			}
			if err != nil && strings.Contains(err.Error(), "refresh-token") {
				t.Errorf("a token is in the error: %v", err)
			}
		})
	}
}

func TestAnAuthorizationServerThatIsAway(t *testing.T) {
	w, s, c, _ := signedIn(t)
	w.isAway.Store(true)
	c.Advance(57 * time.Minute) // due, and still good
	if got, err := signed(t, s, w.url()); got != "Bearer access-token-1" || err != nil {
		t.Errorf("got %q, %v, want the old token", got, err)
	}
	c.Advance(time.Hour)
	_, err := signed(t, s, w.url())
	var needed *upstream.SignInError
	if !errors.As(err, &needed) || !needed.Temporary || needed.Command != "" {
		t.Errorf("got %#v, want an error that may pass", err)
	}
	w.isAway.Store(false)
	if got, err := signed(t, s, w.url()); got != "Bearer access-token-2" || err != nil {
		t.Errorf("afterwards: got %q, %v", got, err)
	}
}

func TestWhatAServerRefuses(t *testing.T) {
	t.Run("a request without a sign-in", func(t *testing.T) {
		w := newWorld(t)
		s := source(t, w, t.TempDir(), nil, nil)
		_, err := refused(t, s, w, "", 401, `Bearer scope="a b"`)
		wantSignIn(t, err, "has not signed in", "airlock login crm")
		if _, err := s.Login(t.Context(), &person{}, nil); err != nil {
			t.Fatal(err)
		}
		if got := w.scopes(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("got the scopes %q, want those of the challenge", got)
		}
	})
	t.Run("a token before its end", func(t *testing.T) {
		w, s, _, _ := signedIn(t)
		if again, err := refused(t, s, w, "access-token-1", 401, `Bearer error="invalid_token"`); !again || err != nil {
			t.Fatalf("got %t, %v, want another try", again, err)
		}
		if got, _ := signed(t, s, w.url()); got != "Bearer access-token-2" {
			t.Errorf("got %q", got)
		}
		if again, err := refused(t, s, w, "access-token-1", 401, `Bearer`); !again || err != nil || len(w.forms) != 2 {
			t.Errorf("a token that was replaced meanwhile: got %t, %v, %d requests", again, err, len(w.forms))
		}
	})
	t.Run("a token without a successor", func(t *testing.T) {
		w, c := newWorld(t), testenv.NewClock(time.Now())
		w.token = func(_ url.Values, answer map[string]any) int { delete(answer, "refresh_token"); return 200 }
		s := source(t, w, t.TempDir(), c, nil)
		if _, err := s.Login(t.Context(), &person{}, nil); err != nil {
			t.Fatal(err)
		}
		_, err := refused(t, s, w, "access-token-1", 401, `Bearer`)
		wantSignIn(t, err, "cannot be renewed", "airlock login crm")
	})
	t.Run("too few rights", func(t *testing.T) { // C-086
		w, s, _, _ := signedIn(t)
		challenge := `Bearer error="insufficient_scope", scope="write admin"`
		_, err := refused(t, s, w, "access-token-1", 403, challenge)
		wantSignIn(t, err, `"write", "admin"`, "airlock login crm --scope write --scope admin")
		if _, err := s.Login(t.Context(), &person{}, nil); err != nil {
			t.Fatal(err)
		}
		if got := w.scopes(); !slices.Equal(got, []string{"admin", "read", "write"}) {
			t.Errorf("got the scopes %q, want the old and the new ones", got)
		}
		if again, err := refused(t, s, w, "access-token-1", 403, challenge); !again || err != nil {
			t.Errorf("the old token: got %t, %v, want another try", again, err)
		}
	})
	t.Run("rights with names that a shell would run", func(t *testing.T) {
		w, s, _, _ := signedIn(t)
		_, err := refused(t, s, w, "access-token-1", 403,
			`Bearer error="insufficient_scope", scope="x;curl&evil|sh $(id) --no-browser fine"`)
		wantSignIn(t, err, `"x;curl&evil|sh"`, "airlock login crm --scope fine")
	})
	t.Run("a call that is forbidden", func(t *testing.T) {
		w, s, _, _ := signedIn(t)
		if again, err := refused(t, s, w, "access-token-1", 403, ""); again || err != nil {
			t.Errorf("got %t, %v, want the server's own answer", again, err)
		}
	})
}

func TestClientCredentials(t *testing.T) {
	machine := func(c *oauth.Config) {
		c.Grant, c.ClientID, c.ClientSecret = oauth.ClientCredentials, "mine", secret.New("client secret/1")
	}
	w, c, directory := newWorld(t), testenv.NewClock(time.Now()), t.TempDir()
	s := source(t, w, directory, c, machine)
	if again, err := refused(t, s, w, "", 401, `Bearer`); !again || err != nil {
		t.Fatalf("got %t, %v, want another try", again, err)
	}
	if got, err := signed(t, s, w.url()); got != "Bearer access-token-1" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	c.Advance(2 * time.Hour)
	if got, err := signed(t, source(t, w, directory, c, machine), w.url()); got != "Bearer access-token-2" ||
		err != nil {
		t.Errorf("after its end: got %q, %v", got, err)
	}
	w.token = func(_ url.Values, answer map[string]any) int {
		clear(answer)
		answer["error"] = "invalid_client"
		return 401
	}
	c.Advance(2 * time.Hour)
	before := len(w.forms)
	for range 5 {
		_, err := signed(t, s, w.url())
		wantSignIn(t, err, "invalid_client", "")
	}
	if got := len(w.forms) - before; got != 1 {
		t.Errorf("got %d requests to a server that refuses Airlock, want 1", got)
	}
}

// Issue 23: a sign-in stayed in force until its authorization server had answered the revocation.
func TestASignInEndsBeforeItIsRevoked(t *testing.T) {
	w, s, _, directory := signedIn(t)
	other := source(t, w, directory, nil, nil) // of another process
	if header, err := signed(t, other, w.url()); header == "" || err != nil {
		t.Fatalf("before: got %q, %v", header, err)
	}
	w.revoke = func(http.ResponseWriter, *http.Request) {
		for name, source := range map[string]*oauth.Source{"this process": s, "another process": other} {
			if header, err := signed(t, source, w.url()); header != "" || err != nil {
				t.Errorf("%s, during the revocation: got %q, %v", name, header, err)
			}
		}
	}
	got, err := s.Logout(t.Context())
	if err != nil || !got.WasSignedIn || got.NotRevoked != "" || w.count("/revoke") != 2 {
		t.Errorf("got %+v, %v, %d requests to revoke", got, err, w.count("/revoke"))
	}
}

func TestLogout(t *testing.T) {
	w, s, _, directory := signedIn(t)
	got, err := s.Logout(t.Context())
	if err != nil || !got.WasSignedIn || got.NotRevoked != "" || len(w.refresh) != 0 || w.count("/revoke") != 2 {
		t.Errorf("got %+v, %v, %d tokens left", got, err, len(w.refresh))
	}
	if header, err := signed(t, s, w.url()); header != "" || err != nil {
		t.Errorf("afterwards: got %q, %v", header, err)
	}
	if again, err := s.Logout(t.Context()); err != nil || again.WasSignedIn {
		t.Errorf("again: got %+v, %v", again, err)
	}
	if files, _ := filepath.Glob(filepath.Join(directory, "sign-ins", "*.age")); len(files) != 0 {
		t.Errorf("%q are left", files)
	}
	w.change[asPath] = func(d map[string]any) { delete(d, "revocation_endpoint") }
	if _, err := s.Login(t.Context(), &person{}, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Logout(t.Context()); err != nil || !strings.Contains(got.NotRevoked, "no revocation") {
		t.Errorf("without revocation: got %+v, %v", got, err)
	}
}

// C-087: stored sign-ins are encrypted, and nothing printed has a credential in it.
func TestWhatIsKeptIsEncrypted(t *testing.T) {
	w, c, directory := newWorld(t), testenv.NewClock(time.Now()), t.TempDir()
	w.change["/register"] = func(d map[string]any) {
		d["client_secret"], d["token_endpoint_auth_method"] = "secret-of-airlock", "client_secret_basic"
	}
	var mu sync.Mutex
	held := map[string]bool{}
	s, err := oauth.New(oauth.Config{ServerID: "crm", URL: w.url(), Client: oauth.Client{}}, &oauth.Options{
		Store: oauth.StoreIn(t, directory), Principal: "ada",
		Now:  c.Now,
		Hold: func(text string) { mu.Lock(); defer mu.Unlock(); held[text] = true },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Login(t.Context(), &person{}, nil); err != nil {
		t.Fatal(err)
	}
	for _, credential := range []string{"access-token-1", "refresh-token-1", "secret-of-airlock", "code-0"} {
		if !held[credential] {
			t.Errorf("%q is not held", credential)
		}
		err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			if bytes.Contains(text, []byte(credential)) || info.Mode().Perm()&0o077 != 0 && info.Size() > 0 {
				t.Errorf("%q holds %q, or is open to others (%v)", path, credential, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAKeptSignInThatCannotBeRead(t *testing.T) {
	for name, content := range map[string]string{"rubbish": "rubbish", "nothing": ""} {
		t.Run(name, func(t *testing.T) {
			w, s, c, directory := signedIn(t)
			store := oauth.StoreIn(t, directory)
			damage := func() {
				t.Helper()
				all := store.Rows(t)
				for id := range all {
					all[id] = []byte(content)
				}
				store.Put(t, all)
			}
			damage()
			for _, again := range []*oauth.Source{s, source(t, w, directory, c, nil)} {
				_, err := signed(t, again, w.url())
				wantSignIn(t, err, "its stored sign-in cannot be read", "airlock login crm")
				if _, err := again.State(); err == nil || !strings.Contains(err.Error(), "cannot be read") {
					t.Errorf("got %v", err)
				}
			}
			if _, err := s.Login(t.Context(), &person{}, nil); err != nil {
				t.Errorf("signing in again: %v", err)
			}
			damage()
			if out, err := s.Logout(t.Context()); err != nil || !out.WasSignedIn || out.NotRevoked == "" {
				t.Errorf("forgetting it: got %+v, %v", out, err)
			}
			if header, err := signed(t, s, w.url()); header != "" || err != nil {
				t.Errorf("afterwards: got %q, %v", header, err)
			}
		})
	}
}

func TestConfigurationsPrintNoCredentials(t *testing.T) {
	c := oauth.Config{ServerID: "crm", URL: "https://x.example/?key=hunter2-and-more",
		Client: oauth.Client{ClientSecret: secret.New("hunter2-and-more")}}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, c); strings.Contains(text, "hunter2") || !strings.Contains(text, "crm") {
			t.Errorf("%s: got %q", format, text)
		}
	}
}

func TestAWorkloadsAssertion(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret-place", "assertion")
	w := newWorld(t)
	s := source(t, w, t.TempDir(), testenv.NewClock(time.Now()), func(c *oauth.Config) {
		c.Grant, c.ClientID, c.AssertionFile = oauth.JWTBearer, "mine", file
	})
	_, err := refused(t, s, w, "", 401, `Bearer`)
	wantSignIn(t, err, "assertionFile", "")
	if err != nil && strings.Contains(err.Error(), "secret-place") {
		t.Errorf("a path of the host is in what a model reads: %v", err)
	}
	if len(w.forms) != 0 {
		t.Errorf("got %d token requests without an assertion", len(w.forms))
	}
}
