package consoletest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// violations says each breach of the Content-Security-Policy.
const violations = `addEventListener('securitypolicyviolation', (v) =>
	console.error('Content-Security-Policy: ' + v.violatedDirective + ' forbids ' + (v.blockedURI || v.sample) +
		' in ' + v.sourceFile + ':' + v.lineNumber));`

// closedMeanwhile is what the browser logs of a connection that it had opened in advance, and that
// was closed before it was used. Where the page then lacks something, it throws or logs as well.
const closedMeanwhile = "net::ERR_SOCKET_NOT_CONNECTED"

// watch records what the page should not do.
func (p *Page) watch() {
	p.Helper()
	if err := chromedp.Listen(p.ctx, func(event any) {
		switch event := event.(type) {
		case *runtime.EventExceptionThrown:
			details := event.ExceptionDetails
			p.note("the page throws: " + details.Text + " " + said(details.Exception))
		case *runtime.EventConsoleAPICalled:
			if event.Type == runtime.ConsoleAPICalledTypeError {
				p.note("the page logs: " + said(event.Args...))
			}
		case *log.EventEntryAdded:
			if event.Entry.Level == log.EntryLevelError && !strings.Contains(event.Entry.Text, closedMeanwhile) {
				p.note(fmt.Sprintf("the browser logs: %s %s", event.Entry.Text, event.Entry.URL))
			}
		case *network.EventRequestWillBeSent:
			address := event.Request.URL
			if !strings.HasPrefix(address, p.base+"/") && !strings.HasPrefix(address, "blob:"+p.base+"/") &&
				!strings.HasPrefix(address, "data:") {
				p.note("the page requests " + address)
			}
		default:
			p.intercept(event)
		}
	}); err != nil {
		p.Fatal(err)
	}
	p.Before(violations)
}

// Before runs JavaScript before each page that is loaded from now on.
func (p *Page) Before(script string) {
	p.Helper()
	call(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
}

func said(values ...*runtime.RemoteObject) string {
	var words []string
	for _, v := range values {
		switch {
		case v == nil:
		case v.Description != "":
			words = append(words, v.Description)
		default:
			words = append(words, string(v.Value))
		}
	}
	return strings.Join(words, " ")
}

func (p *Page) note(problem string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.ContainsFunc(p.expected, func(part string) bool { return strings.Contains(problem, part) }) {
		p.problems = append(p.problems, problem)
	}
}

// Expect lets the page log errors with one of these texts in them, such as "status of 409".
func (p *Page) Expect(parts ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, parts...)
}
