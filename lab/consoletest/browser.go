// Package consoletest drives the console in Chromium, for tests of what people see and do:
//
//	browser := consoletest.Open(t)
//	page := browser.Page(t, base, session)   // one person's browser: separate cookies and storage
//	page.Open("#/vehicles/1")
//	page.Click(`[data-action="lock"]`)       // waits until it can be clicked
//	page.See(".commands .state", "done")     // waits until it is there
//	page.Press("Control+K")
//	page.Audit()                             // accessibility, by axe
//
// Each step waits for its condition; its failure names what is missing. A screenshot of each page
// of a failed test is kept. A page fails its test at the end if it threw or logged an error,
// violated its Content-Security-Policy, or sent a request to another origin.
package consoletest

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"motorpool/internal/require"
	"motorpool/simulator/devstack"
)

// Browser is a running Chromium. It is safe for concurrent use; its pages are not.
type Browser struct{ ctx context.Context }

// Open starts a browser, which ends with the test.
func Open(t *testing.T) *Browser {
	t.Helper()
	devstack.NeedServer(t, devstack.Browser)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath(devstack.Browser),
		chromedp.WindowSize(1280, 800), chromedp.Flag("lang", "en"),
		// Chromium's own requests would be those of the page, in a test.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		// A map without a graphics card.
		chromedp.Flag("enable-unsafe-swiftshader", true))
	temp, err := os.MkdirTemp("", "chromium-") // Chromium, being killed, leaves files behind
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	options = append(options, chromedp.Env("TMPDIR="+temp))
	ctx, cancel := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // starts it
		t.Fatalf("start %s: %v", devstack.Browser, err)
	}
	return &Browser{ctx}
}

// Page returns an empty page for the console of a service, with the session of these cookies.
func (b *Browser) Page(t *testing.T, base string, session ...*http.Cookie) *Page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	p := &Page{T: t, base: base, ctx: ctx}
	t.Cleanup(func() { p.close(); cancel() })
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("open a page: %v", err)
	}
	p.watch()
	// As if it were the window that a person looks at, whatever other pages there are.
	call(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	p.Resize(1280, 800)
	p.SignIn(session...)
	return p
}

// SignIn gives the page the session of these cookies, instead of the one it has.
func (p *Page) SignIn(session ...*http.Cookie) {
	p.Helper()
	for _, cookie := range session {
		call(p, network.SetCookie, network.SetCookieParams{
			Name: cookie.Name, Value: cookie.Value, URL: p.base, Path: cookie.Path,
			Secure: new(cookie.Secure), HTTPOnly: new(cookie.HttpOnly), SameSite: network.CookieSameSiteStrict,
		})
	}
}

// Session returns the cookies of the page's session.
func (p *Page) Session() []*http.Cookie {
	p.Helper()
	var session []*http.Cookie
	for _, cookie := range call(p, network.GetCookies, network.GetCookiesParams{URLs: []string{p.base}}).Cookies {
		session = append(
			session,
			&http.Cookie{Name: cookie.Name, Value: cookie.Value, Path: cookie.Path, Secure: cookie.Secure, HttpOnly: cookie.HTTPOnly},
		)
	}
	return session
}

// SignIn returns the cookies of the session that a link begins, which is good once.
func SignIn(t *testing.T, link string) []*http.Cookie {
	t.Helper()
	client := http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       time.Minute,
	}
	var response *http.Response
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		var err error
		response, err = client.Get(link)
		require.NoError(t, err)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusServiceUnavailable || time.Now().After(deadline) {
			break // on a busy machine a server may be missing for a moment
		}
	}
	var session []*http.Cookie
	for _, cookie := range response.Cookies() {
		if cookie.MaxAge >= 0 {
			session = append(session, cookie)
		}
	}
	if len(session) == 0 {
		t.Fatalf("%s begins no session: %s", link, response.Status)
	}
	return session
}

// call sends the browser a command.
func call[P, R any](p *Page, command cdp.Command[P, R], params P) R {
	p.Helper()
	var result R
	err := chromedp.Do(p.ctx, chromedp.Func(func(ctx context.Context, t *chromedp.Target) (err error) {
		result, err = cdp.Call(ctx, t, command, params)
		return err
	}))
	if err != nil {
		p.Fatalf("%s: %v", command.Method, err)
	}
	return result
}
