package consoletest

import (
	"context"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// answer is an answer that the page gets instead of the service's.
type answer struct {
	method, path string // part of it
	status       int64
	body         string
}

// Answer answers requests with a method, whose path contains a text, instead of the service, until
// Unanswer. Status 0: the service answers, and its answer is lost.
func (p *Page) Answer(method, path string, status int64, body string) {
	p.Helper()
	p.mu.Lock()
	p.answers = append(p.answers, answer{method, path, status, body})
	p.mu.Unlock()
	call(p, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{
		{
			URLPattern: p.base + "/api/*", RequestStage: fetch.RequestStageRequest,
		},
		{URLPattern: p.base + "/api/*", RequestStage: fetch.RequestStageResponse},
	}})
}

// Unanswer lets the service answer again.
func (p *Page) Unanswer() {
	p.Helper()
	p.mu.Lock()
	p.answers = nil
	p.mu.Unlock()
	call(p, fetch.Disable, cdp.Empty{})
}

// intercept answers a request that waits for it.
func (p *Page) intercept(event any) {
	paused, ok := event.(*fetch.EventRequestPaused)
	if !ok {
		return
	}
	p.mu.Lock()
	n := slices.IndexFunc(p.answers, func(a answer) bool {
		return paused.Request.Method == a.method && strings.Contains(paused.Request.URL, a.path)
	})
	var a answer
	if n >= 0 {
		a = p.answers[n]
	}
	p.mu.Unlock()
	if isAnswered := paused.ResponseStatusCode != 0; n >= 0 && (a.status == 0) != isAnswered {
		n = -1 // it is the turn of the other stage
	}
	go func() { // a listener must not wait for the browser
		err := chromedp.Do(p.ctx, chromedp.Func(func(ctx context.Context, t *chromedp.Target) (err error) {
			switch {
			case n < 0:
				_, err = cdp.Call(ctx, t, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: paused.RequestID})
			case a.status == 0:
				_, err = cdp.Call(
					ctx, t, fetch.FailRequest,
					fetch.FailRequestParams{RequestID: paused.RequestID, ErrorReason: network.ErrorReasonConnectionReset},
				)
			default:
				_, err = cdp.Call(ctx, t, fetch.FulfillRequest, fetch.FulfillRequestParams{
					RequestID: paused.RequestID, ResponseCode: a.status, Body: []byte(a.body),
					ResponseHeaders: []*fetch.HeaderEntry{{Name: "Content-Type", Value: "application/json"}},
				})
			}
			return err
		}))
		// The page may have gone on without the answer, or the service answers again.
		over := func(part string) bool { return strings.Contains(err.Error(), part) }
		if err != nil && p.ctx.Err() == nil &&
			!slices.ContainsFunc([]string{"Invalid InterceptionId", "Fetch domain is not enabled"}, over) {
			p.note("answer " + paused.Request.URL + ": " + err.Error())
		}
	}()
}

// Offline cuts the page off from the network, or ends that.
func (p *Page) Offline(offline bool) {
	p.Helper()
	rules := network.EmulateNetworkConditionsByRuleParams{}
	if offline {
		rules.MatchedNetworkConditions = []*network.Conditions{{Offline: true, Latency: 0, DownloadThroughput: -1, UploadThroughput: -1}}
	}
	call(p, network.EmulateNetworkConditionsByRule, rules)
	call(p, network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: offline})
}
