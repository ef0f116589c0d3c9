package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"motorpool/simulator/devstack"
)

// browser opens a browser for a test. What a page logs as an error, such as a breach of its
// Content-Security-Policy, fails the test.
func browser(t *testing.T) context.Context {
	t.Helper()
	devstack.NeedServer(t, devstack.Browser)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath(devstack.Browser), chromedp.WindowSize(1280, 800),
		chromedp.Flag("lang", "en"))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // starts it
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, func(event any) {
		switch event := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page throws: %s", event.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if event.Entry.Level == log.EntryLevelError && !strings.Contains(event.Entry.Text, "status of 401") {
				t.Errorf("the page logs: %s %s", event.Entry.Text, event.Entry.URL)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestConsole_MovesACarAndHaltsTheFleet(t *testing.T) {
	ctx := browser(t)
	world := begin(t, newDir(t), onSharedPostgres(t))
	do := func(what string, steps ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(ctx, steps...); err != nil {
			page, _ := chromedp.Run(context.WithoutCancel(ctx), chromedp.Evaluate[string]("document.body.innerText"))
			t.Fatalf("%s: %v\n%s", what, err, page)
		}
	}
	text := func(selector string) string {
		t.Helper()
		found, err := chromedp.Run(ctx, chromedp.Text(selector))
		if err != nil {
			t.Fatalf("%s: %v", selector, err)
		}
		return found
	}
	do("sign in", chromedp.Navigate(world.env["CONSOLE_URL"]), chromedp.WaitVisible("tbody tr:nth-child(12)"))
	do("unlock car 1", chromedp.Click(`[data-vehicle="1"]`), chromedp.Click(`[data-action="unlock"]`),
		chromedp.Click(`//dialog[@open]//button[text()="Unlock"]`), chromedp.WaitVisible(`[data-command][data-state="succeeded"] svg .end.succeeded`))
	if got := text(".commands .state"); got != "done" {
		t.Errorf("the unlock is %q", got)
	}
	if locked := world.status(1)["telemetry.is_locked"]; locked != false {
		t.Errorf("locked after it: %v", locked)
	}
	do("halt", chromedp.KeyEvent("h"), chromedp.SendKeys("dialog[open] input", "recall of brakes"), chromedp.Click("dialog[open] button.danger"), chromedp.WaitNotPresent("dialog[open]"), chromedp.WaitReady("body[data-halted]"))
	for _, place := range []string{".halt strong", ".why"} {
		if got := text(place); !strings.Contains(got, "recall of brakes") {
			t.Errorf("%s says %q", place, got)
		}
	}
	if r := world.call("POST", "vehicles/1/control/lock", "ADMIN_TOKEN"); r.Error.Code != "commands_halted" {
		t.Errorf("a command while halted: %+v", r)
	}
	do("resume", chromedp.Click(".halt button"), chromedp.WaitNotPresent("body[data-halted]"))
	do("tour", chromedp.Click(`//nav//a[text()="Tour"]`), chromedp.Click(`[data-step="1"] button`), chromedp.WaitVisible(`[data-step="1"] [data-state="succeeded"]`), chromedp.WaitVisible(`[data-step="1"] .learned`))
	do("sign out", chromedp.Click("header [popovertarget]"), chromedp.Click(`//header//button[text()="Sign out"]`), chromedp.WaitVisible(`//a[@href="sign-in"]`))
	do("open the console again", chromedp.Navigate(world.env["BASE_URL"]+"/console/"), chromedp.WaitVisible(`//a[text()="Sign in"]`))
}
