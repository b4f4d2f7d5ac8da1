package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/app/listing"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// Lists makes the lists of all nodes. *listing.Lists implements it and documents the contract.
type Lists interface {
	Runs(ctx context.Context, who caller.Caller, q listing.RunQuery) (listing.Runs, error)
	Servers(ctx context.Context, who caller.Caller) ([]listing.Server, []string, error)
	Records(ctx context.Context, who caller.Caller, q listing.RecordQuery) (listing.Records, error)
}

func (h *handler) listRoutes() {
	paged := []string{"since", "until", "limit", "before"}
	h.route("GET /v1/runs", h.listRuns, append(paged, "state", "text")...)
	h.route("GET /v1/servers", h.listServers)
	for _, field := range listing.RecordFields() {
		paged = append(paged, field.Name)
	}
	h.route("GET /v1/records", h.listRecords, paged...)
}

// The numbers of entries of a page.
const (
	listedPage    = 50
	maxListedPage = 200
)

// page returns what all lists take: a period, the number of entries, and the place after which they begin.
func page(r *http.Request) (period audit.Period, limit int, before string, err error) {
	asked := r.URL.Query()
	limit = listedPage
	if text := asked.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxListedPage {
			err = errors.New("limit must be a number from 1 to " + strconv.Itoa(maxListedPage))
		}
	}
	if err == nil {
		period, err = audit.ParsePeriod(asked.Get("since"), asked.Get("until"), time.Now())
	}
	if err != nil {
		err = &refusal{status: http.StatusUnprocessableEntity, code: "invalid_request", message: err.Error()}
	}
	return period, limit, asked.Get("before"), err
}

// listed is a list with the nodes that are missing in it, and the value of before for the next page.
func listed(name string, list any, unanswered []string, next string) map[string]any {
	all := map[string]any{name: list}
	if len(unanswered) > 0 {
		all["unanswered"], all["problem"] = unanswered, listing.Missing(unanswered)
	}
	if next != "" {
		all["next"] = next
	}
	return all
}

func (h *handler) listRuns(ctx context.Context, who caller.Caller, r *http.Request) (int, any, error) {
	if !who.Has(caller.ScopeRun) {
		return 0, nil, needs(caller.ScopeRun, who)
	}
	period, limit, before, err := page(r)
	if err != nil {
		return 0, nil, err
	}
	q := listing.RunQuery{State: r.URL.Query().Get("state"), Text: r.URL.Query().Get("text"), Period: period,
		Limit: limit}
	switch q.State {
	case "", listing.GoingOn, listing.IsOK, listing.NotOK:
	default:
		return 0, nil, &refusal{status: http.StatusUnprocessableEntity, code: "invalid_request",
			message: "state is \"going on\", \"ok\" or \"not ok\""}
	}
	q.Before = listing.ParsePlace(before)
	list, err := h.opts.Lists.Runs(ctx, who, q)
	if err != nil {
		return 0, nil, err
	}
	next := ""
	if n := len(list.Rows); list.More && n > 0 {
		next = list.Rows[n-1].Place().String()
	}
	return http.StatusOK, listed("runs", append([]listing.Run{}, list.Rows...), list.Unanswered, next), nil
}

// listedServer is a server as the caller sees it.
type listedServer struct {
	ID       string `json:"id"`
	Node     string `json:"node,omitempty"`
	State    string `json:"state"`
	Tools    int    `json:"tools"`
	Withheld int    `json:"withheld"`
	Problem  string `json:"problem,omitempty"`
}

func (h *handler) listServers(ctx context.Context, who caller.Caller, _ *http.Request) (int, any, error) {
	if !who.Has(caller.ScopeRun) {
		return 0, nil, needs(caller.ScopeRun, who)
	}
	servers, unanswered, err := h.opts.Lists.Servers(ctx, who)
	list := []listedServer{}
	for _, s := range servers {
		list = append(list, listedServer{s.ID, s.Node, s.Word(), s.Tools, s.Withheld,
			h.opts.Clean(strings.TrimSpace(s.Problem + " " + s.Unreachable))})
	}
	return http.StatusOK, listed("servers", list, unanswered, ""), err
}

func (h *handler) listRecords(ctx context.Context, who caller.Caller, r *http.Request) (int, any, error) {
	if !who.May(caller.People, caller.See, caller.Object{Kind: caller.Log}) {
		return 0, nil, needs(caller.ScopeAudit, who)
	}
	period, limit, before, err := page(r)
	if err != nil {
		return 0, nil, err
	}
	q := listing.RecordQuery{Period: period, Limit: limit, Before: listing.ParsePlaces(before)}
	for _, field := range listing.RecordFields() {
		*field.Of(&q) = r.URL.Query().Get(field.Name)
	}
	list, err := h.opts.Lists.Records(ctx, who, q)
	if err != nil {
		return 0, nil, err
	}
	all := listed("records", append([]listing.Record{}, list.Records...), list.Unanswered, list.Older.String())
	if problem := strings.TrimSpace(list.Problem + " " + list.Missing()); problem != "" {
		all["problem"] = problem
	}
	return http.StatusOK, all, nil
}
