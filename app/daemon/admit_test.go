package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// untilUnused waits until an account holds no reservations. A request releases its reservation
// shortly after its answer.
func (s *served) untilUnused(account string) {
	s.t.Helper()
	testenv.Await(s.t, account+" holds nothing", func() bool {
		unit, err := s.daemon.bounded.requests.Take(account, s.daemon.opts.Config.Serve.CallerRequests)
		if err == nil {
			unit.Release()
		}
		return err == nil
	})
}

// A caller that has reached its limit and sends thousands of further requests is refused, with
// each of its tokens. Another caller at the same address is answered meanwhile. The first is
// answered again when its requests have ended.
func TestOneCallerLeavesRoomForOthers(t *testing.T) {
	const share, more, senders = 500, 4_500, 20
	s := serve(t, "")
	hog, second, other := s.token("mallory", auth.ScopeAgents), s.token("mallory", auth.ScopeAgents, auth.ScopeRun),
		s.token("ann", auth.ScopeAgents)
	for _, token := range []string{hog, second, other} {
		if res, body := s.post("/v1/agents", token, "{}"); res.StatusCode != http.StatusUnprocessableEntity {
			t.Fatalf("got %d, %s", res.StatusCode, body)
		}
	}
	s.untilUnused("user mallory")
	body := `{"name":"a","type":"supervised"}`
	conns := make([]io.ReadWriteCloser, share)
	for n := range conns {
		conns[n] = s.send(post("/v1/agents", hog, len(body)) + body[:1])
	}
	testenv.Await(t, "the requests have begun", func() bool { return s.daemon.bounded.answering.n.Load() >= share })
	var refused atomic.Int64
	var sending sync.WaitGroup
	for n := range senders {
		token := []string{hog, second}[n%2]
		sending.Go(func() {
			for range more / senders {
				res, told := s.post("/v1/agents", token, body)
				if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "" ||
					!strings.Contains(string(told), "this caller has reached its limit of requests") {
					t.Errorf("a request too many: got %d, %s", res.StatusCode, told)
					return
				}
				refused.Add(1)
			}
		})
	}
	for range 50 {
		if res, told := s.post("/v1/agents", other, "{}"); res.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("another caller: got %d, %s", res.StatusCode, told)
		}
	}
	sending.Wait()
	if got := refused.Load(); got != more {
		t.Errorf("got %d refused of %d", got, more)
	}
	for n, conn := range conns {
		if n%2 == 0 {
			conn.Close() // a cancelled request is released, too
		} else if _, err := io.WriteString(conn, body[1:]); err != nil {
			t.Error(err)
		}
	}
	s.untilUnused("user mallory")
	if res, told := s.post("/v1/agents", hog, "{}"); res.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("when its requests are over: got %d, %s", res.StatusCode, told)
	}
}

// blocking is a server whose requests wait for the test. Requests to /known/NAME are admitted
// for the user NAME.
type blocking struct {
	*httptest.Server
	bounded *bounded
	begun   chan struct{}
	release chan struct{} // one value for each request with "?wait"; "?panic" panics
}

func newBlocking(t *testing.T, each int64) *blocking {
	until := func(context.Context, caller.Caller, func(error)) func() { return func() {} }
	b := &blocking{bounded: newBounded(quota.Limit{Resource: quota.Requests, Each: each}, newInFlight(), until),
		begun: make(chan struct{}), release: make(chan struct{})}
	b.bounded.next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, known := strings.CutPrefix(r.URL.Path, "/known/"); known {
			if err := b.bounded.admit(r.Context(), caller.Caller{Kind: caller.User, Principal: name}); err != nil {
				http.Error(w, err.Error(), http.StatusTooManyRequests)
				return
			}
		}
		if r.URL.Query().Has("wait") {
			b.begun <- struct{}{}
			select {
			case <-b.release:
			case <-r.Context().Done():
			}
		}
		if r.URL.Query().Has("panic") {
			panic(http.ErrAbortHandler)
		}
	})
	b.Server = httptest.NewServer(b.bounded)
	t.Cleanup(b.Server.Close)
	return b
}

// get sends a request with a credential, which may be "", and returns the status of the answer,
// or 0 if there was no answer.
func (b *blocking) get(ctx context.Context, t *testing.T, path, credential string) int {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.URL+path, nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	if credential != "" {
		r.Header.Set("Authorization", credential)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	res.Body.Close()
	return res.StatusCode
}

// until repeats a request until its status is as wanted. A reservation is released shortly
// after the answer.
func (b *blocking) until(t *testing.T, status int, path, credential string) {
	t.Helper()
	testenv.Await(t, fmt.Sprintf("%s is answered with %d", path, status),
		func() bool { return b.get(t.Context(), t, path, credential) == status })
}

// Requests of unauthenticated callers count for their network. Requests of a caller that was
// authenticated at its last request do not, until its credential is not valid any more.
func TestUnknownCallersShareTheirNetworksPlaces(t *testing.T) {
	const each = 16
	b := newBlocking(t, each)
	if got := b.get(t.Context(), t, "/known/ann", "a"); got != http.StatusOK {
		t.Fatalf("got %d", got)
	}
	b.until(t, http.StatusOK, "/", "") // the reservation above is released
	var waiting sync.WaitGroup
	for n := range each {
		waiting.Go(func() { b.get(t.Context(), t, "/?wait", fmt.Sprintf("guess %d", n)) })
		<-b.begun
	}
	for _, credential := range []string{"", "guess", "another"} {
		if got := b.get(t.Context(), t, "/known/bob", credential); got != http.StatusTooManyRequests {
			t.Errorf("an unknown caller %q: got %d, want that its network has its share", credential, got)
		}
	}
	if got := b.get(t.Context(), t, "/known/ann", "a"); got != http.StatusOK {
		t.Errorf("a caller that is known: got %d", got)
	}
	// the handler does not admit it, as after the end of the credential
	if got := b.get(t.Context(), t, "/", "a"); got != http.StatusOK {
		t.Errorf("a caller that is not known any more: got %d", got)
	}
	b.until(t, http.StatusTooManyRequests, "/known/ann", "a")
	for range each {
		b.release <- struct{}{}
	}
	waiting.Wait()
	b.until(t, http.StatusOK, "/known/ann", "a")
}

// The reservation of a request is released if its handler panics or its client disconnects.
func TestPlacesAreReleasedWhateverHappens(t *testing.T) {
	const each = 16
	b := newBlocking(t, each)
	for range 3 * each {
		if got := b.get(t.Context(), t, "/known/ann?panic", "a"); got == http.StatusOK {
			t.Error("got an answer of a handler that has panicked")
		}
	}
	var clients sync.WaitGroup
	for _, path := range []string{"/known/ann", "/"} {
		for range each {
			ctx, disconnect := context.WithCancel(t.Context())
			clients.Go(func() { b.get(ctx, t, path+"?wait", "") })
			<-b.begun
			disconnect()
		}
	}
	clients.Wait()
	for _, account := range []string{"user ann", "network 127.0.0.1"} {
		testenv.Await(t, account+" holds nothing", func() bool {
			unit, err := b.bounded.requests.Take(account, each)
			if err == nil {
				unit.Release()
			}
			return err == nil
		})
	}
}

// The number of cached credentials is bounded.
func TestAccountsAreBounded(t *testing.T) {
	a := newAccounts()
	most := int(quota.For(quota.Credentials).Total)
	for n := range 2 * most {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", fmt.Sprint("Bearer ", n))
		a.add(credentialOf(r), "ann")
	}
	if got := a.by.Len(); got != most {
		t.Errorf("got %d, want %d", got, most)
	}
}

// Unfinished requests without a credential had used up the limit of an address, so that an
// operator who was signed in there was refused (issue 23). Requests with a valid cookie or
// token do not count for that limit; requests with an invalid one do.
func TestValidCredentialsDoNotShareALimitWithOthers(t *testing.T) {
	const each = 2
	b := newBlocking(t, each)
	b.bounded.signedIn = func(r *http.Request) (string, bool) { return "ann", r.Header.Get("Cookie") == "valid" }
	b.bounded.proved = func(_ http.ResponseWriter, r *http.Request) (string, bool) {
		return "bob",
			r.Header.Get("Authorization") == "Bearer valid"
	}
	var waiting sync.WaitGroup
	for range each {
		waiting.Go(func() {
			if res, err := http.Get(b.URL + "/sign-in?wait"); err == nil {
				res.Body.Close()
			}
		})
		<-b.begun
	}
	for name, test := range map[string]struct {
		header, value string
		want          int
	}{
		"nobody": {"X-None", "", 429}, "a cookie": {"Cookie", "valid", 200},
		"a token":        {"Authorization", "Bearer valid", 200},
		"another cookie": {"Cookie", "other", 429}, "another token": {"Authorization", "Bearer other", 429},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.URL+"/questions", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(test.header, test.value)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != test.want {
			t.Errorf("%s: got %d, want %d", name, res.StatusCode, test.want)
		}
	}
	for range each {
		b.release <- struct{}{}
	}
	waiting.Wait()
}

// An open stream of events ends at once when its credential ends: it was open for a second longer, as a request that is
// still to be answered is (issue 23).
func TestAnOpenStreamEndsWithItsCredential(t *testing.T) {
	for method, ends := range map[string]bool{http.MethodGet: true, http.MethodPost: false} {
		var over func(error)
		b := newBounded(quota.For(quota.Requests), newInFlight(),
			func(_ context.Context, _ caller.Caller, ended func(error)) func() {
				over = ended
				return func() {}
			})
		b.next = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if err := b.admit(r.Context(), caller.Caller{Principal: "ann"}); err != nil {
				t.Error(err)
				return
			}
			over(caller.ErrEnded)
			if got := errors.Is(context.Cause(r.Context()), caller.ErrEnded); got != ends {
				t.Errorf("%s: got ended %v, want %v", method, got, ends)
			}
		})
		b.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, "/mcp", nil))
	}
}

// Issue 23: a client that read a download slowly got all of it after its token had been revoked.
func TestADownloadEndsWithItsCredential(t *testing.T) {
	var over func(error)
	b := newBounded(quota.For(quota.Requests), newInFlight(), func(_ context.Context, _ caller.Caller,
		ended func(error)) func() {
		over = ended
		return func() {}
	})
	sent := make(chan error, 1)
	b.next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := b.admit(r.Context(), caller.Caller{Principal: "ann"})
		w.WriteHeader(http.StatusOK)
		if err == nil {
			err = http.NewResponseController(w).Flush()
		}
		if err == nil {
			over(caller.ErrEnded)
			_, err = w.Write(make([]byte, 64<<20)) // more than the buffers of the kernel
		}
		sent <- err
	})
	server := httptest.NewServer(withTimeouts(limits{readTime: time.Hour, bodyTime: time.Hour}, b))
	t.Cleanup(server.Close)
	response, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := <-sent; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the download: got %v, want %v", err, os.ErrDeadlineExceeded)
	}
}
