package consoletest

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"motorpool/internal/require"
)

const (
	// waitFor is how long a condition may take on a machine that does other work, too.
	waitFor = 60 * time.Second
	// lookEvery is the interval between two checks of a condition.
	lookEvery = 50 * time.Millisecond
	// callFor is how long a check may take.
	callFor = 30 * time.Second
)

// Page is a page in a browser of one person. Its methods fail the test on errors. Not safe for
// concurrent use.
type Page struct {
	*testing.T
	base string
	ctx  context.Context
	dark bool

	mu       sync.Mutex
	problems []string // guarded by mu
	expected []string // guarded by mu: problems that are none
	answers  []answer // guarded by mu
}

//go:embed locate.js
var locate string

// found is what locate has found.
type found struct {
	Visible   bool    `json:"visible"`
	Clickable bool    `json:"clickable"`
	Text      string  `json:"text"`
	Why       string  `json:"why"`
	X         float64 `json:"x"`
	Y         float64 `json:"y"`
}

// Open loads the console at a path such as #/vehicles/1. A page that has loaded it changes its
// path, as a link does.
func (p *Page) Open(path string) {
	p.Helper()
	if loaded, _ := chromedp.Run(p.ctx,
		chromedp.Evaluate[bool](`location.pathname.endsWith('/console/') && !!document.querySelector('header')`)); loaded {
		// The former page is gone when the listeners of the change, and what follows, are done.
		p.Do(fmt.Sprintf(`new Promise((done) => {
			const before = location.hash;
			addEventListener('hashchange', () => setTimeout(done), { once: true });
			location.hash = %s;
			if (location.hash === before) done();
		})`, quote(path)))
		return
	}
	p.Load(p.base + "/console/" + path)
}

// Load loads an address.
func (p *Page) Load(address string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitFor)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(address)); err != nil {
		p.Fatalf("load %s: %v", address, err)
	}
}

// Reload loads the page again.
func (p *Page) Reload() {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitFor)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Reload()); err != nil {
		p.Fatalf("reload: %v", err)
	}
}

// See waits until something that a selector finds, with a text in it, is visible, and returns all
// of its text.
func (p *Page) See(selector string, text ...string) string {
	p.Helper()
	var seen string
	p.wait(fmt.Sprintf("see %s", describe(selector, text)), func() string {
		f, err := p.find(selector, text, false)
		seen = f.Text
		return because(f.Visible, f.Why, err)
	})
	return seen
}

// Gone waits until nothing like that is visible.
func (p *Page) Gone(selector string, text ...string) {
	p.Helper()
	p.wait(fmt.Sprintf("no more %s", describe(selector, text)), func() string {
		f, err := p.find(selector, text, false)
		return because(!f.Visible, "it says "+quote(f.Text), err)
	})
}

// Click waits until something can be clicked, and clicks it.
func (p *Page) Click(selector string, text ...string) {
	p.Helper()
	p.wait(fmt.Sprintf("click %s", describe(selector, text)), func() (why string) {
		at, err := p.find(selector, text, true)
		if !at.Clickable {
			return because(false, at.Why, err)
		}
		if err := chromedp.Do(p.ctx, chromedp.MouseEvent(chromedp.MouseMoved, at.X, at.Y), chromedp.MouseClickXY(at.X, at.Y)); err != nil {
			p.Fatalf("click %s: %v", selector, err)
		}
		missed, err := evaluate[bool](p, "!!window.missed")
		// It cannot be asked where the click has opened another page.
		return because(err != nil || !missed, "the page moved under the click", nil)
	})
}

// Drag presses the mouse at a part of what a selector finds (0.5, 0.5 is its middle), moves to
// another part, and releases. From and to the same part it clicks.
func (p *Page) Drag(selector string, fromX, fromY, toX, toY float64) {
	p.Helper()
	p.See(selector)
	box := Value[struct{ X, Y, Width, Height float64 }](
		p, fmt.Sprintf("document.querySelector(%s).getBoundingClientRect().toJSON()", quote(selector)),
	)
	at := func(kind string, x, y float64, buttons int64) {
		call(p, input.DispatchMouseEvent, input.DispatchMouseEventParams{
			Type: input.DispatchMouseEventType(kind), X: box.X + x*box.Width, Y: box.Y + y*box.Height, Button: input.MouseButtonLeft,
			Buttons: buttons, ClickCount: 1,
		})
	}
	const steps = 8
	at("mouseMoved", fromX, fromY, 0)
	at("mousePressed", fromX, fromY, 1)
	for i := 1.0; i <= steps && (fromX != toX || fromY != toY); i++ {
		at("mouseMoved", fromX+(toX-fromX)*i/steps, fromY+(toY-fromY)*i/steps, 1)
	}
	at("mouseReleased", toX, toY, 0)
}

// Fill replaces what a field has by a text, as typing does.
func (p *Page) Fill(selector, text string) {
	p.Helper()
	p.Click(selector)
	p.Do(fmt.Sprintf("document.querySelector(%s).select()", quote(selector)))
	p.Type(text)
}

// Select chooses an option of a list, by its value.
func (p *Page) Select(selector, value string) {
	p.Helper()
	p.See(selector)
	p.Do(
		fmt.Sprintf(
			`{ const s = document.querySelector(%s); s.value = %s; s.dispatchEvent(new Event('change', { bubbles: true })); }`,
			quote(selector), quote(value),
		),
	)
}

// Until waits until a JavaScript expression is true.
func (p *Page) Until(what, expression string) {
	p.Helper()
	p.wait(what, func() string {
		holds, err := evaluate[bool](p, expression)
		return because(holds, expression+" is false", err)
	})
}

// Do runs JavaScript.
func (p *Page) Do(script string) {
	p.Helper()
	if _, err := evaluate[chromedp.Void](p, script); err != nil {
		p.Fatalf("%s: %v", script, err)
	}
}

// Value returns what a JavaScript expression or promise has.
func Value[V any](p *Page, expression string) V {
	p.Helper()
	value, err := evaluate[V](p, expression)
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	return value
}

// Resize gives the window another size.
func (p *Page) Resize(width, height int64) {
	p.Helper()
	call(
		p, emulation.SetDeviceMetricsOverride,
		emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1},
	)
}

// Dark switches the system's colours.
func (p *Page) Dark(dark bool) {
	p.Helper()
	p.dark = dark
	scheme := map[bool]string{true: "dark", false: "light"}[dark]
	call(
		p, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}},
	)
}

// ForceColors has the system force few colours on a page, as for people who need contrast.
func ForceColors(p *Page) {
	p.Helper()
	call(
		p, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "forced-colors", Value: "active"}, //nolint:misspell // its name in CSS
		}},
	)
}

func (p *Page) find(selector string, text []string, toClick bool) (found, error) {
	return evaluate[found](
		p,
		fmt.Sprintf(
			"(%s)(%s, %s, %v)", strings.TrimSuffix(strings.TrimSpace(locate), ";"), quote(selector),
			quote(strings.Join(text, " ")), toClick,
		),
	)
}

func evaluate[V any](p *Page, expression string) (V, error) {
	ctx, cancel := context.WithTimeout(p.ctx, callFor)
	defer cancel()
	return chromedp.Run(
		ctx,
		chromedp.Evaluate[V](expression, chromedp.EvalAwaitPromise, func(e *runtime.EvaluateParams) { e.UserGesture = new(true) }),
	)
}

// wait calls look until it returns no reason any more, at most for waitFor.
func (p *Page) wait(what string, look func() (why string)) {
	p.Helper()
	for deadline := time.Now().Add(waitFor); ; time.Sleep(lookEvery) {
		why := look()
		if why == "" {
			return
		}
		if time.Now().After(deadline) || p.ctx.Err() != nil {
			require.Late(p, "after %v not: %s\nbecause %s\n%s", waitFor, what, why, p.describe())
		}
	}
}

// because returns why something does not hold; empty: it does. A page that is being replaced
// cannot be looked at.
func because(holds bool, why string, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case holds:
		return ""
	}
	return why
}

// describe returns the page's address, and its text.
func (p *Page) describe() string {
	shown, err := evaluate[string](p, `location.href + '\n' + document.body.innerText.slice(0, 4000)`)
	if err != nil {
		return "the page cannot be read: " + err.Error()
	}
	return shown
}

// close reports what the page should not have done, and keeps a screenshot where the test failed.
func (p *Page) close() {
	p.mu.Lock()
	problems := p.problems
	p.mu.Unlock()
	for _, problem := range problems {
		p.Error(problem)
	}
	if !p.Failed() {
		return
	}
	file, err := os.CreateTemp("", "console-"+strings.NewReplacer("/", "-", " ", "-").Replace(p.Name())+"-*.png")
	if err == nil {
		err = p.shoot(file)
	}
	if err != nil {
		p.Logf("no screenshot: %v", err)
		return
	}
	p.Logf("screenshot: %s", file.Name())
}

// Shoot writes a screenshot to a file: of the whole page, or of what a dialog is open over.
func (p *Page) Shoot(name string) {
	p.Helper()
	err := os.MkdirAll(filepath.Dir(name), 0o755)
	if err == nil {
		var file *os.File
		if file, err = os.Create(name); err == nil {
			err = p.shoot(file)
		}
	}
	if err != nil {
		p.Fatalf("screenshot: %v", err)
	}
}

// Picture returns a screenshot of an element, as PNG.
func (p *Page) Picture(selector string) []byte {
	p.Helper()
	p.See(selector)
	ctx, cancel := context.WithTimeout(p.ctx, waitFor)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.Screenshot(chromedp.CSS(selector)))
	if err != nil {
		p.Fatalf("screenshot of %s: %v", selector, err)
	}
	return picture
}

func (p *Page) shoot(file *os.File) error {
	defer file.Close()
	ctx, cancel := context.WithTimeout(p.ctx, callFor)
	defer cancel()
	whole, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`!document.querySelector('dialog[open], :popover-open')`))
	if err != nil {
		return err
	}
	take := chromedp.CaptureScreenshot() // a dialog lies over the window
	if whole {
		take = chromedp.FullScreenshot(100)
	}
	picture, err := chromedp.Run(ctx, take)
	if err != nil {
		return err
	}
	_, err = file.Write(picture)
	return err
}

func describe(selector string, text []string) string {
	if len(text) == 0 {
		return selector
	}
	return selector + " with " + quote(strings.Join(text, " "))
}

// quote returns a text as JavaScript has it.
func quote(text string) string {
	quoted, _ := json.Marshal(text) // a text
	return string(quoted)
}
