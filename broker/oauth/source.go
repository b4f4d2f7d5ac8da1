package oauth

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/reach"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// Source authorizes the requests to one server for one principal. It is safe for concurrent
// use, and several processes can have a Source for the same sign-in.
type Source struct {
	config Config // of the sign-in
	target Config // of the tokens that the sign-in is exchanged for; see Config.Exchanges
	plain  *exchanged
	opts   Options
	id     string        // of the stored sign-in; empty without a store
	turn   chan struct{} // holds a value while a token is got or changed
	held   *turn         // in a store, while turn holds a value
	met    reach.Met     // how far away the server is

	reading sync.Mutex // held while the stored sign-in is read or replaced, and guards failed
	failed  failedRead

	mu        sync.Mutex // guards the fields below; kept and seen are changed while reading is held, too
	kept      *record    // nil: no sign-in
	seen      seen       // of kept
	challenge Challenge
	nonce     string // of the next DPoP proof for the server
	refused   refused
}

// refused is the last error of an authorization server for a grant without a person.
type refused struct {
	err   error
	until time.Time
	login string // of the sign-in that was exchanged
}

// New returns the source of a checked configuration.
func New(config Config, opts *Options) (*Source, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	s := &Source{config: config, target: config, turn: make(chan struct{}, 1)}
	if config.Exchanges() {
		s.config, s.target, s.plain = config.atProvider(), config.forExchange(), s.acting(nil)
	}
	if opts != nil {
		s.opts = *opts
	}
	s.opts = s.opts.withDefaults()
	if s.opts.Store != nil {
		s.id = idOf(s.opts.Principal, config.ServerID, config.URL)
	}
	return s, nil
}

// State is what is known about a sign-in, without credentials.
type State struct {
	SignedIn
	IsSignedIn bool     // a token is stored that is valid or can be refreshed, or needs no person
	Over       string   // why the sign-in has ended; empty if it has not
	Wanted     []string // scopes that the server asked for and the sign-in lacks
}

// State reads the stored sign-in.
func (s *Source) State() (State, error) {
	kept, err := s.reload()
	if err != nil || kept == nil {
		return State{}, err
	}
	isOver := kept.Over != "" || !kept.Tokens.isUsable(s.opts.Now()) && kept.Tokens.Refresh == "" &&
		s.config.isInteractive()
	return State{SignedIn: kept.signedIn(), IsSignedIn: !isOver, Over: kept.Over, Wanted: slices.Clone(kept.Wanted)},
		nil
}

// IsKept reports whether a sign-in is stored, even if it has expired.
func (s *Source) IsKept() bool {
	kept, err := s.reload()
	return kept != nil || err != nil
}

// Met records how far away the server is. Connections that the source signs for must note it there.
func (s *Source) Met() *reach.Met { return &s.met }

// sign adds the token of r to a request.
func (s *Source) sign(request *http.Request, r *record) error {
	request.Header.Set("Authorization", r.scheme()+" "+r.Tokens.Access)
	if len(r.Key) == 0 {
		return nil
	}
	key, err := signerOf(r.Key)
	if err != nil {
		return err
	}
	s.mu.Lock()
	nonce := s.nonce
	s.mu.Unlock()
	proof, err := key.proof(request.Method, request.URL.String(), r.Tokens.Access, nonce, s.opts.Now())
	if err == nil {
		request.Header.Set("DPoP", proof)
	}
	return err
}

// isServer reports whether a URL belongs to the server: tokens go nowhere else.
func (s *Source) isServer(u *url.URL) bool { return originOf(u.String()) == originOf(s.config.URL) }

// takeNonce keeps a nonce for the next proof, and reports whether it is a new one.
func (s *Source) takeNonce(nonce string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	isNew := s.nonce != nonce
	s.nonce = nonce
	return isNew
}

func tokenOf(request *http.Request) string {
	_, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	return token
}

func (s *Source) remember(c Challenge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.challenge = c
}

func (s *Source) lastChallenge() Challenge {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.challenge
}

// hold registers a credential for redaction.
func (s *Source) hold(credential string) {
	if credential != "" {
		s.opts.Hold(credential)
	}
}

// problem returns an error with the command that signs in.
func (s *Source) problem(why string, scopes []string) *upstream.SignInError {
	e := &upstream.SignInError{ServerID: s.config.ServerID, Why: why,
		Command: "airlock login " + visible.Word(s.config.ServerID)}
	if s.opts.For != "" {
		e.Command += " --for " + visible.Word(s.opts.For)
	}
	for _, scope := range scopes {
		if plainWord.MatchString(scope) { // others are remembered, and asked for with the plain command
			e.Command += " --scope " + scope
		}
	}
	if !s.config.isInteractive() {
		e.Command = ""
	}
	return e
}

// plainWord matches scopes that a command shows.
var plainWord = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.:/@-]{0,79}$`)

// maxShownScopes is how many scopes a sentence names.
const maxShownScopes = 8

// Reasons for a sign-in.
const (
	whyNever      = "its user has not signed in"
	whyOver       = "its sign-in has ended, and cannot be renewed"
	whyUnreadable = "its stored sign-in cannot be read"
	whyAway       = "its stored sign-in cannot be read or renewed now: the database of the cluster does not answer"
	whyRevoked    = "its sign-in has ended: the authorization server no longer accepts it"
)

// whyScopes names the missing rights.
func whyScopes(scopes []string) string {
	if len(scopes) == 0 {
		return "it asks for rights that its sign-in does not have"
	}
	more := ""
	if len(scopes) > maxShownScopes {
		scopes, more = scopes[:maxShownScopes], " and more"
	}
	return "it asks for rights that its sign-in does not have: " + quoteAll(scopes) + more
}

// failure returns the error of a call that has no token.
func (s *Source) failure(err error) error {
	var signIn *upstream.SignInError
	switch {
	case errors.As(err, &signIn):
		return err
	case errors.Is(err, errChanged):
		return &upstream.SignInError{ServerID: s.config.ServerID, Why: err.Error(), Temporary: true}
	case isUnreadable(err):
		return s.problem(whyUnreadable, nil)
	case isAway(err), errors.Is(err, errTurnOver):
		return &upstream.SignInError{ServerID: s.config.ServerID, Why: whyAway, Temporary: true}
	case mayPass(err):
		return &upstream.SignInError{ServerID: s.config.ServerID,
			Why: fmt.Sprintf("its authorization server cannot be reached now: %v", err), Temporary: true}
	}
	return &upstream.SignInError{ServerID: s.config.ServerID,
		Why: fmt.Sprintf("its authorization server gives Airlock no token: %v", err)}
}
