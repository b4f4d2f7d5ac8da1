package team

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// calendar is an MCP server for users of a provider. Its tool changes something, and it
// remembers who changed what, and in which trace.
type calendar struct {
	url, issuer string

	mu      sync.Mutex
	changes []change
}

type change struct{ who, what, traceparent string }

func (c *calendar) all() []change {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]change{}, c.changes...)
}

func startCalendar(t *testing.T, issuer string) *calendar {
	t.Helper()
	c := &calendar{issuer: issuer}
	server := mcp.NewServer(&mcp.Implementation{Name: "calendar", Version: "1"}, nil)
	type input struct {
		What string `json:"what"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "add_event", Description: "Adds an event to the calendar."},
		func(_ context.Context, r *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
			traceparent, _ := r.Params.Meta["traceparent"].(string)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.changes = append(c.changes, change{r.Extra.TokenInfo.UserID, in.What, traceparent})
			return nil, map[string]int{"events": len(c.changes)}, nil
		})
	mux := http.NewServeMux()
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	c.url = web.URL + "/mcp"
	const metadata = "/.well-known/oauth-protected-resource/mcp"
	mux.Handle(metadata, auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource: c.url, AuthorizationServers: []string{issuer}, ScopesSupported: []string{"openid", "profile"},
	}))
	options := &auth.RequireBearerTokenOptions{ResourceMetadataURL: web.URL + metadata, AllowMissingExpiration: true}
	mux.Handle("/mcp", auth.RequireBearerToken(c.verify, options)(
		mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
			&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})))
	return c
}

// verify asks the provider whose a token is.
func (c *calendar) verify(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.issuer+"/userinfo", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var info struct {
		Subject string `json:"sub"`
	}
	if err := json.NewDecoder(res.Body).Decode(&info); err != nil || res.StatusCode != http.StatusOK ||
		info.Subject == "" {
		return nil, fmt.Errorf("%w: %s", auth.ErrInvalidToken, res.Status)
	}
	return &auth.TokenInfo{UserID: info.Subject}, nil
}

// requestID finds the hidden field of the provider's form.
var requestID = regexp.MustCompile(`name="id" value="([^"]+)"`)

// signIn is a person who opens the address of a sign-in and types name and password.
func signIn(address string) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	browser := &http.Client{Jar: jar}
	res, err := browser.Get(address)
	if err != nil {
		return err
	}
	page, err := io.ReadAll(res.Body)
	res.Body.Close()
	form := requestID.FindSubmatch(page)
	if err != nil || form == nil {
		return fmt.Errorf("%s shows no form: %v\n%s", address, err, page)
	}
	at := res.Request.URL
	res, err = browser.PostForm(at.Scheme+"://"+at.Host+"/login/username", url.Values{
		"id": {string(form[1])}, "username": {"test-user@127.0.0.1"}, "password": {"verysecure"},
	})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.Request.URL.Path != "/callback" || res.StatusCode != http.StatusOK {
		return fmt.Errorf("the sign-in ends at %s with %s", res.Request.URL.Path, res.Status)
	}
	return nil
}
