// Package console_test uses the console of make dev as people do, in Chromium.
package console_test

import (
	"encoding/json"
	"fmt"
	"image/color"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/lab/consoletest"
	"motorpool/store/pg"
	"motorpool/store/storetest"
)

// desk has the console of an installation, and the sessions of the people who are signed in to it.
type desk struct {
	*live
	browser                         *consoletest.Browser
	admin, agency, operator, viewer []*http.Cookie // agency: an administrator of agency 1
}

// page opens a page with a person's session. The map is slow without a graphics card, so it is
// shown only where the test needs it.
func (d *desk) page(t *testing.T, person []*http.Cookie) *consoletest.Page {
	t.Helper()
	p := d.browser.Page(t, d.env["BASE_URL"], person...)
	p.Before(`localStorage.map ??= 'hidden'`)
	return p
}

// Each test has separate cars until the group ends, so that all can run concurrently. The tests
// that concern the whole fleet follow.
func TestConsole(t *testing.T) {
	t.Parallel()
	browser := consoletest.Open(t)
	app := appServer(t)
	d := &desk{live: begin(t, "--cors-origins", app), browser: browser}
	d.signsIn(t)
	d.agency = consoletest.SignIn(t, d.env["CONSOLE_URL_AGENCY"])
	d.operator = consoletest.SignIn(t, d.env["CONSOLE_URL_OPERATOR"])
	d.viewer = consoletest.SignIn(t, d.env["CONSOLE_URL_VIEWER"])
	t.Run("concurrently", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T){
			"a name and a password":                d.signsInWithAPassword,
			"a car that answers":                   d.locksCar1,
			"cars that are offline, drive, fail":   d.saysWhyNot,
			"a viewer and an operator":             d.knowsItsRoles,
			"a refund whose answer is lost":        d.refundsOnce,
			"two operators":                        d.showsWhatOthersDo,
			"a rental, for its client":             d.rentsForAClient,
			"the demo's tour":                      d.leadsThroughTheTour,
			"every page":                           d.showsEveryPage,
			"a page that is enlarged":              d.coversNoFocus,
			"a map in forced colours":              d.drawsInForcedColours,
			"a wrong clock":                        d.countsByTheServicesClock,
			"a failing service":                    d.saysWhatFailed,
			"a page that is closed while it reads": d.leavesAPageThatReads,
			"an interrupted network":               d.saysThatItIsNotLive,
			"a browser without WebGL":              d.worksWithoutWebGL,
			"an area that is drawn":                d.drawsAnArea,
			"the map style of the operator":        d.drawsTheMapStyleOfTheOperator,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t)
			})
		}
	})
	t.Run("with only the keyboard", d.needsNoMouse)
	t.Run("all cars in one bulk command", d.locksAllCars)
	t.Run("a client's web app", func(t *testing.T) { d.rentsInAWebApp(t, app) })
	t.Run("a vehicle that moved to another agency", d.saysThatAVehicleIsGone)
	t.Run("a session that ends", d.returnsAfterSigningIn)
	t.Run("10,000 vehicles", d.holdsALargeFleet) // last: its fleet slows the pages of others
}

// The link works again after it was used.
func (d *desk) signsIn(t *testing.T) {
	p := d.browser.Page(t, d.env["BASE_URL"])
	p.Expect("status of 401")
	p.Load(d.env["BASE_URL"]) // redirects a browser to the console
	p.See("a", "Sign in")
	p.Load(d.env["CONSOLE_URL"])
	p.See(`nav [aria-current="page"]`, "Attention")
	p.See("header", "admin")
	d.admin = p.Session()
	again := d.browser.Page(t, d.env["BASE_URL"])
	again.Load(d.env["CONSOLE_URL"])
	again.Click(`.numbers a[href*="from="]`) // bookings today
	again.See(`tr[data-status="active"]`)
}

func (d *desk) signsInWithAPassword(t *testing.T) {
	p := d.browser.Page(t, d.env["BASE_URL"])
	p.NeedAxe()
	p.Expect("status of 401")
	p.Load(d.env["BASE_URL"])
	p.Click("a", "Sign in")
	p.See("body", "CONSOLE_PASSWORD")
	p.Fill(`[name="name"]`, "viewer")
	p.Fill(`[name="password"]`, "something else")
	p.Click("button", "Sign in")
	p.See(`[role="alert"]`, "The name or the password is wrong.")
	p.Audit("the sign-in")
	p.Fill(`[name="name"]`, "Viewer")
	p.Fill(`[name="password"]`, d.env["CONSOLE_PASSWORD"])
	p.Click("button", "Sign in")
	p.See("header", "viewer")
	p.See(".numbers")
}

// order runs a function that orders a command, and returns the selector of the new command on the
// page.
func order(p *consoletest.Page, do func()) string {
	p.Helper()
	const ids = `[...document.querySelectorAll('[data-command]')].map((e) => e.dataset.command)`
	before, _ := json.Marshal(consoletest.Value[[]string](p, ids)) // their texts
	do()
	added := fmt.Sprintf(`(%s.find((id) => !%s.includes(id)) ?? '')`, ids, before)
	p.Until("a command that is new", added+" !== ''")
	return `[data-command="` + consoletest.Value[string](p, added) + `"]`
}

func (d *desk) locksCar1(t *testing.T) {
	p := d.page(t, d.admin)
	p.Open("#/")
	p.Click(`[data-vehicle="1"]`)
	p.See("h1", "M-IM 2101")
	p.Click(`[data-action="unlock"]`)
	p.See("dialog[open]", "All doors will be unlocked, for anyone at the vehicle.")
	command := order(p, func() { p.Click("dialog[open] button", "Unlock") })
	p.See(command+`[data-state="succeeded"]`, "Unlock done")
	assert.Equal(t, d.isLocked(), false, "after the unlock is_locked")
	command = order(p, func() { p.Click(`[data-action="lock"]`) })
	p.See(command+`[data-state="succeeded"]`, "Lock done")
	p.See(command + ` svg .end.succeeded`)
	p.Click(command+` a`, "Details")
	p.See("h1", "Lock: M-IM 2101")
	for _, step := range []string{"ordered", "published", "ended", "answered"} {
		p.See(`[data-step="` + step + `"]`)
	}
	p.See(`[data-step="answered"]`, "the vehicle did it")
}

func (d *desk) saysWhyNot(t *testing.T) {
	p := d.page(t, d.admin)
	p.Expect("status of 409")
	p.Open("#/vehicles/5")
	p.See(`[data-action="unlock"][aria-disabled="true"]`)
	p.See(".why", "Unlock")
	p.See(".why", "The unit is offline.")
	p.Click(`[data-action="unlock"]`)
	p.Gone("dialog[open]")

	p.Open("#/vehicles/6")
	p.See(`[data-action="disable-driving"][aria-disabled="true"]`)
	p.See(".why", "The vehicle is driving. This works only while it stands.")
	if got := api(p, "POST", "vehicles/6/control/disable-driving", ""); got != "409 vehicle_state_conflict" {
		t.Errorf("disable-driving of a driving car: %s", got)
	}

	p.Open("#/vehicles/10")
	command := order(p, func() { p.Click(`[data-action="lock"]`) })
	p.See(command+`[data-state="failed"]`, "tried and failed")
	p.See(command, "Look at its state before you send it again; if it fails again, send a mechanic.")
	p.See(command + ` svg .end.failed`)
}

// hatched matches the time in which the outcome of a command was unknown.
const hatched = ` svg rect[fill^="url(#"]`

// api calls the API with the session of the page, and returns the status and the code of the error.
func api(p *consoletest.Page, method, path, body string) string {
	p.Helper()
	return consoletest.Value[string](
		p,
		fmt.Sprintf(`fetch('../api/v1/admin/%s', { method: '%s', headers: { 'Content-Type': 'application/json' }, body: '%s' })
		.then(async (r) => r.status + ' ' + ((await r.json()).error?.code ?? ''))`, path, method, body),
	)
}

func (d *desk) knowsItsRoles(t *testing.T) {
	p := d.page(t, d.viewer)
	p.Expect("status of 403")
	p.Open("#/vehicles/2")
	p.See("header", "viewer")
	p.See(`[data-action="lock"][aria-disabled="true"]`)
	p.See(".why", "Your role may only read.")
	p.Press("h")
	p.See("dialog[open]", "Only an administrator who has the scope halt")
	p.Press("Escape")
	p.Open("#/")
	p.Click(`[data-vehicle="2"] input[type="checkbox"]`)
	p.See(`[data-action="lock"][aria-disabled="true"]`)
	for path, body := range map[string]string{"vehicles/2/control/lock": "", "commands": `{"action":"lock","vehicle_ids":[2]}`} {
		assert.Equal(t, api(p, "POST", path, body), "403 forbidden", "a viewer's POST %s", path)
	}

	p = d.page(t, d.operator)
	p.Expect("status of 403")
	p.Open("#/vehicles/6")
	p.See("header", "operator")
	command := order(p, func() { p.Click(`[data-action="lock"]`) })
	p.See(command+`[data-state="succeeded"]`, "by operator")
	p.Press("h")
	p.See("dialog[open]", "Only an administrator who has the scope halt")
	assert.Equal(t, api(p, "PUT", "halts", `{"reason":"x"}`), "403 forbidden", "an operator's halt")
}

func (d *desk) refundsOnce(t *testing.T) {
	booking := "bookings/" + d.env["BOOKING_COMPLETED"]
	p := d.page(t, d.operator)
	p.Expect("status of 403")
	p.Open("#/" + booking)
	p.See(`[data-action="refund"][aria-disabled="true"]`)
	assert.Equal(t, api(p, "POST", booking+"/refund", `{"amount":1,"reason":"x"}`), "403 forbidden", "an operator's refund")

	p = d.page(t, d.admin)
	p.Expect("ERR_CONNECTION_RESET")
	p.Open("#/" + booking)
	p.Click(`[data-action="refund"]`)
	p.Fill(`dialog[open] input[name="amount"]`, "5.00")
	p.Fill(`dialog[open] input[name="reason"]`, "the car was dirty")
	p.See("dialog[open]", "€5.00")
	p.Answer("POST", booking+"/refund", 0, "") // the refund is made, but its response is lost
	p.Click(`[data-send="refund"]`)
	p.See(`[role="alert"]`, "Refund, €5.00, the car was dirty")
	p.Unanswer()
	p.Click(`[data-send="again"]`)
	p.Gone(`[role="alert"]`)
	p.See(`tr[data-charge][data-state="paid"]`, "the car was dirty")
	if refunded := consoletest.Value[float64](p,
		fmt.Sprintf(`fetch('../api/v1/admin/%s').then((r) => r.json()).then((r) => r.data.payment.refunded)`, booking)); refunded != 5 {
		t.Errorf("the booking shows %v refunded, want 5", refunded)
	}
}

func (d *desk) showsWhatOthersDo(t *testing.T) {
	mine, theirs := d.page(t, d.admin), d.page(t, d.operator)
	mine.Open("#/vehicles/7") // a car with a slow radio
	theirs.Open("#/vehicles/7")
	mine.See(`[data-action="lock"][aria-disabled="false"]`)
	mine.Resize(narrow, 780)
	// Within their section: what the vehicle reports stands above it, and may take a line more.
	const tops = `[...document.querySelectorAll('.orders .groups [data-action]')].map(
		(e) => Math.round(e.getBoundingClientRect().top - e.closest('.orders').getBoundingClientRect().top)).join()`
	before := consoletest.Value[string](mine, tops)
	command := order(mine, func() { theirs.Click(`[data-action="lock"]`) })
	mine.See(command, "by operator")
	mine.See(".why", "A command to this vehicle is running, requested by operator.")
	assert.Equal(t, consoletest.Value[string](mine, tops), before, "the buttons have not moved under a pointer; their tops")
	mine.See(command + `[data-state="succeeded"]`)
	mine.See(`[data-action="lock"][aria-disabled="false"]`)
}

func (d *desk) leadsThroughTheTour(t *testing.T) {
	p := d.page(t, d.admin)
	p.Expect("status of 503", "status of 409")
	p.Open("#/")
	p.Click("nav a", "Tour")
	p.Click(`[data-step="3"] button`)
	p.See(`[data-step="3"]`, "Refused, and nothing was sent")
	p.See(`[data-step="3"]`, "503 vehicle_offline")
	p.Click(`[data-step="4"] button`)
	p.See(`[data-step="4"]`, "409 vehicle_state_conflict")
	p.Click(`[data-step="7"] button`) // a noisy radio
	p.See(`[data-step="7"] [data-state="succeeded"]`)
	p.See(`[data-step="7"] .learned`)
}

func (d *desk) needsNoMouse(t *testing.T) {
	p := d.page(t, d.admin)
	p.Expect("status of 503")
	d.emptiesTheQueue(t, p)
	p.Press("g")
	p.See(`[data-vehicle="1"]`)
	p.Press("Control+k")
	p.See("dialog[open] input:focus")
	p.Type("2101")
	p.Press("Enter")
	p.See("h1", "M-IM 2101")
	p.See(`[data-action="lock"]`) // the page is read
	p.TabTo(`[data-action="refresh"]`)
	p.Press("Enter")
	p.See("[data-result]", "The vehicle has just answered.")
	p.See(`[data-action="refresh"]:focus`) // it was off meanwhile
	p.Press("Control+k")
	p.See("dialog[open] input:focus")
	p.Type("lock 2101")
	command := order(p, func() { p.Press("Enter") })
	p.See(command+`[data-state="succeeded"]`, "Lock done")
	p.See(`[data-action="unlock"][aria-disabled="false"]`)
	p.TabTo(`[data-action="unlock"]`)
	p.Press("Enter")
	p.See("dialog[open] button:focus", "Cancel")
	p.Press("Escape")
	p.Gone("dialog[open]")
	p.See(`[data-action="unlock"]:focus`) // the focus before the dialog
	p.Press("Control+k")
	p.See("dialog[open] input:focus")
	p.Type("unlock 2101")
	p.Hold("Enter") // chooses, and must not confirm
	p.See("dialog[open] h2", "Unlock: M-IM 2101?")
	assert.Equal(t, d.isLocked(), true, "after Enter was held in the palette is_locked")
	p.Press("Enter") // where the focus is
	p.Gone("dialog[open]")
	p.TabTo(command + ` a`)
	p.Press("Enter")
	p.See("h1", "Lock: M-IM 2101")

	p.Press("h")
	p.See("dialog[open] form")
	p.TabTo("dialog[open] input")
	p.Type("recall of brakes")
	p.TabTo("dialog[open] button.danger")
	p.Press("Enter")
	p.Gone("dialog[open]")
	p.See("body[data-halted]")
	p.See(".halt", "recall of brakes")
	p.See(".halt", "12 vehicles")
	assert.Equal(t, api(p, "POST", "vehicles/1/control/lock", ""), "503 commands_halted", "a command during a halt")
	p.Press("Control+k")
	p.Type("2101")
	p.Press("Enter")
	p.See(`[data-action="lock"][aria-disabled="true"]`)
	p.See(".why", "Commands are halted: recall of brakes")
	p.TabTo(".halt button")
	p.Press("Enter")
	p.See("dialog[open] dd", "recall of brakes")
	p.TabTo("dialog[open] input")
	p.Type("brakes are repaired")
	p.Press("Enter")
	p.Gone(".halt")
	p.Open("#/activity?action=commands.resume")
	p.See("td.note", "brakes are repaired")
	p.Press("Control+k")
	p.Type("2101")
	p.Press("Enter")
	p.Gone("body[data-halted]")
	p.See(`[data-action="lock"][aria-disabled="false"]`)
	for _, key := range []string{"h", "?", "Control+k"} {
		p.Open("#/units")
		p.Press(key)
		p.See("dialog[open] h2")
		p.Do("history.back()")
		p.Gone("dialog[open]")
	}
	p.Open("#/activity")
	p.See("tbody tr:nth-child(40)")
	p.Do("scrollTo(0, 700)")
	p.Until("the page is scrolled", "history.state.y === 700")
	p.Open("#/units")
	p.Until("the next page begins at its top", "scrollY === 0")
	p.Do("history.back()")
	p.Until("the list is where it was left", "location.hash === '#/activity' && scrollY === 700")
	p.Click("header [popovertarget]")
	p.See(":popover-open")
	p.Do("history.back()")
	p.Gone(":popover-open")
	p.Press("?")
	p.See("dialog[open]", "halt commands")
	p.Press("Escape", "g", "/")
	p.See("input[type=search]:focus")
	p.Type("2104")
	p.Gone(`[data-vehicle="1"]`)
	p.Press("ArrowDown", "x")
	p.See("section", "1 vehicle selected")
}

// emptiesTheQueue deals with a car that was left open, and one that was not returned.
func (d *desk) emptiesTheQueue(t *testing.T, p *consoletest.Page) {
	t.Helper()
	db, err := pg.New(pg.Config{URL: d.env["MOTORPOOL_DATABASE_URL"]})
	require.NoError(t, err)
	defer db.Close()
	booking := d.env["BOOKING_OTHER"]
	storetest.Exec(t, db.Pool, `update bookings set start_at = now() - interval '7 hours', end_at = now() - interval '1 hour'
		where id = $1`, booking)
	p.Open("#/vehicles/2")
	const immediately = `{"rules":[{"rule":"left_open","for_s":0},{"rule":"overdue","for_s":0}]}`
	if got := api(p, "PUT", "agencies/1/alert-rules", immediately); got != "200 " {
		t.Fatalf("the rules: %s", got)
	}
	p.TabTo(`[data-action="unlock"]`)
	p.Press("Enter")
	p.See("dialog[open]")
	p.TabTo("dialog[open] button.danger")
	command := order(p, func() { p.Press("Enter") })
	p.See(command + `[data-state="succeeded"]`)

	p.Press("q")
	const leftOpen = `[data-alert][data-rule="left_open"]:has(a[href="#/vehicles/2"])`
	const overdue = `[data-alert][data-rule="overdue"]`
	reach := func(row string) {
		t.Helper()
		p.See(row)
		for range consoletest.Value[int](p, `document.querySelectorAll('[data-alert]').length`) {
			if consoletest.Value[bool](p, fmt.Sprintf(`document.activeElement.closest('%s') !== null`, row)) {
				return
			}
			p.Press("j")
		}
		p.See(row + " a:focus")
	}
	reach(leftOpen)
	p.Press("a")
	p.See(`dialog[open] [name="note"]:focus`)
	p.Type("on the way")
	p.Press("Enter")
	p.See(".quiet "+leftOpen, "on the way")
	p.Gone("dialog[open]")
	reach(leftOpen)
	p.Press("n")
	p.See(`dialog[open] [name="note"]:focus`)
	p.Type("the client was called")
	p.TabTo("dialog[open] form button")
	p.Press("Enter")
	p.See("dialog[open] li", "the client was called")
	p.Press("Escape")
	p.Gone("dialog[open]")
	p.See(leftOpen + " a:focus") // as before the dialog
	p.TabTo(leftOpen + " .actions :first-child")
	p.Press("Enter")
	p.See("h1", "M-IM 2102")
	// The newest one: others have locked the car before.
	p.Until("the lock is done", `document.querySelector('[data-command]')?.matches('[data-state="succeeded"]') &&
		document.querySelector('[data-command]').textContent.includes('Lock done')`)

	p.Press("q")
	p.Gone(leftOpen)
	reach(overdue)
	p.TabTo(overdue + " .actions :first-child")
	p.Press("Enter")
	p.See(`[data-action="extend"][aria-disabled="false"]`)
	p.TabTo(`[data-action="extend"]`)
	p.Press("Enter")
	p.See(`dialog[open] [name="end"]:focus`)
	p.See(`dialog[open] [data-send="extend"]:not(:disabled)`) // the price is read
	p.Press("Enter")
	p.Gone("dialog[open]")
	p.Press("q")
	p.Gone(overdue)
}

// remember makes a page record the commands that it shows: a busy machine may look too late at a
// state that lasts for 10 s.
const remember = `window.shown = new Set();
	new MutationObserver(() => {
		for (const e of document.querySelectorAll('[data-state], [data-kind]'))
			window.shown.add((e.dataset.state ?? e.dataset.kind) + ': ' + e.textContent);
	}).observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true })`

// shown is the condition that a page has shown a command in a state, with texts.
func shown(state string, texts ...string) string {
	condition := fmt.Sprintf("text.startsWith(%q)", state+": ")
	for _, text := range texts {
		condition += fmt.Sprintf(" && text.includes(%q)", text)
	}
	return "[...window.shown].some((text) => " + condition + ")"
}

// Car 8 answers after 20 s. Its page shows that, too.
func (d *desk) locksAllCars(t *testing.T) {
	p, car8 := d.page(t, d.admin), d.page(t, d.admin)
	car8.Open("#/vehicles/8")
	car8.See(`[data-action="lock"][aria-disabled="false"]`)
	p.Open("#/")
	p.See(`[data-vehicle="12"]`)
	p.Click(`thead input[type="checkbox"]`)
	p.See("section", "12 vehicles selected")
	p.Do(remember)
	car8.Do(remember)
	p.Click(`section [data-action="lock"]`)
	p.See("dialog[open] [data-holders]", "client-1") // some are with clients
	command := order(car8, func() { p.Click("dialog[open] button", "Lock") })
	car8.See(command + `[data-state="sent"]` + hatched)
	car8.See(`[data-action="lock"][aria-disabled="true"]`)
	p.See("h1", "Lock: 12 vehicles")
	row := func(vehicle int, kind string) string {
		return fmt.Sprintf(`tr[data-kind="%s"]:has(a[href="#/vehicles/%d"])`, kind, vehicle)
	}
	p.Until("car 8 that may have done it, in the result", shown("unknown", "M-IM 2108E", "The vehicle may have done it."))
	car8.Until("car 8 that may have done it, on its page", shown("unknown", "not known", "The vehicle may have done it."))
	for _, vehicle := range []int{1, 2, 3, 4, 6, 7, 9, 11, 12} {
		p.See(row(vehicle, "executed"))
	}
	p.See(row(5, "refused"), "offline")
	p.See(row(10, "failed"), "Look at its state")

	car8.See(command+`[data-state="succeeded"]`, "A late answer settled it.")
	car8.See(command + hatched) // while the outcome was unknown
	car8.Click(command+" a", "Details")
	car8.See(`[data-step="late"]`, "Late answer, after callers had stopped waiting: done.")
	car8.See(`[data-step="answered"]`, "it is not known what the vehicle did")
	p.See(row(8, "executed"), "answered late")
	p.Gone("button", "not known")
	p.Click("button", "Select the 2 that did not do it")
	p.See("section", "2 vehicles selected")
	p.Open("#/commands")
	p.See("tr[data-command]")
	p.Select("main .filter select", "failed")
	p.Gone(`tr[data-state="succeeded"]`)
	p.See(`tr[data-state="failed"]`, "M-IM 2110")
	p.Open("#/activity")
	p.See("td", "command.lock")
}

// screenshots is the environment variable with a folder for pictures of all pages, for reviews of
// the design.
const screenshots = "CONSOLE_SCREENSHOTS"

// pages are all pages of the console. Each new page needs a line here.
var pages = []struct {
	name, path string // {command}, {bulk} and {booking} stand for the id of an existing one
	shows      string
	then       func(*consoletest.Page) // opens what has no address
}{
	{"attention", "#/attention", `[data-alert]`, nil},
	{
		"attention, acknowledge", "#/attention", `[data-alert]`,
		func(p *consoletest.Page) { p.Click("[data-acknowledge]"); p.See("dialog[open]") },
	},
	{"fleet", "#/", `tr[data-vehicle="12"]`, nil},
	{"fleet, by the hours rented", "#/?sort=rented", `tr[data-vehicle="12"]`, nil},
	{"fleet, selected", "#/", `tr[data-vehicle="12"]`, func(p *consoletest.Page) { p.Press("/", "ArrowDown", "x"); p.See(".chosen") }},
	{"fleet, nothing found", "#/?q=zzz", "p", func(p *consoletest.Page) { p.See("main p", "No vehicle matches.") }},
	{"vehicle", "#/vehicles/2", `dd`, nil},
	{"vehicle, offline", "#/vehicles/5", `.why`, nil},
	{"vehicle, confirm", "#/vehicles/2", `dd`, func(p *consoletest.Page) { p.Click(`[data-action="unlock"]`); p.See("dialog[open]") }},
	{"vehicle, none", "#/vehicles/999", `[role="alert"]`, nil},
	{"command", "#/commands/{command}", `[data-step="answered"]`, nil},
	{"commands", "#/commands", `tr[data-command]`, nil},
	{"commands, none", "#/commands?actor=none", "p", func(p *consoletest.Page) { p.See("main p", "No command matches.") }},
	{"activity", "#/activity", `td`, nil},
	{"bookings", "#/bookings", `tr[data-booking]`, nil},
	{"booking", "#/bookings/{booking}", `tr[data-charge]`, nil},
	{
		"booking, refund", "#/bookings/{booking}", `tr[data-charge]`,
		func(p *consoletest.Page) { p.Click(`[data-action="refund"]`); p.See("dialog[open]") },
	},
	{
		"booking, end without the check", "#/bookings/{booking}", `tr[data-charge]`,
		func(p *consoletest.Page) { p.Click(`[data-action="override"]`); p.See("dialog[open] [name=reason]") },
	},
	{"client", "#/client?agency_id=1&client=client-1", `tr[data-booking]`, nil},
	{"charges", "#/charges", `h1`, func(p *consoletest.Page) { p.Gone("main", "Reading…") }},
	{"agencies", "#/agencies?agency_id=1", `[data-rule="mass_access"]`, nil},
	{"units", "#/units", `h1`, func(p *consoletest.Page) { p.Gone("main", "Reading…") }},
	{"units, all", "#/units?view=all", `td`, nil},
	{"units, unknown", "#/units?view=unknown", `h1`, func(p *consoletest.Page) { p.Gone("main", "Reading…") }},
	{"bulks", "#/bulk", `tr[data-bulk]`, nil},
	{"bulk", "#/bulk/{bulk}", `tr[data-kind="refused"]`, nil},
	{"tour", "#/tour", `[data-step="7"]`, nil},
	{"no page", "#/nowhere", `h1`, func(p *consoletest.Page) { p.See("h1", "There is no page at this address") }},
	{"menu", "#/nowhere", `h1`, func(p *consoletest.Page) { p.Click("header button[popovertarget]"); p.See("[popover]", "Sign out") }},
	{"help", "#/nowhere", `h1`, func(p *consoletest.Page) { p.Press("?"); p.See("dialog[open]") }},
	{"halt", "#/nowhere", `h1`, func(p *consoletest.Page) { p.Press("h"); p.See("dialog[open]") }},
	{"palette", "#/nowhere", `h1`, func(p *consoletest.Page) { p.Press("Control+k"); p.Type("lock 21"); p.See("dialog[open]") }},
	{"fleet with its map", "#/", `tr[data-vehicle="12"]`, func(p *consoletest.Page) {
		p.Click("button", "Show map")
		p.See(`[data-map="drawn"]`)
		p.See(".about", "--map-style")
	}},
}

// The widths of a phone, and of the narrowest supported window.
const (
	phone  = 390
	narrow = 320
)

func (d *desk) showsEveryPage(t *testing.T) {
	p := d.page(t, d.admin)
	p.NeedAxe()
	p.Expect("status of 404")
	p.Open("#/")
	p.See(`tr[data-vehicle="12"]`)
	there := strings.NewReplacer(
		"{command}",
		consoletest.Value[string](
			p,
			`fetch('../api/v1/admin/vehicles/2/control/lock', { method: 'POST' }).then((r) => r.json()).then((r) => r.data.id)`,
		),
		"{bulk}",
		consoletest.Value[string](p, `fetch('../api/v1/admin/commands', { method: 'POST', headers: { 'Content-Type': 'application/json' },
			body: '{"action":"attention","parameters":{"signal":"lights"},"vehicle_ids":[2,5,12]}' })
			.then((r) => r.json()).then((r) => r.data.id)`),
		"{booking}", d.env["BOOKING_ACTIVE"],
	)
	for _, page := range pages {
		p.Open(there.Replace(page.path))
		p.See(page.shows)
		if page.then != nil {
			page.then(p)
		}
		for _, theme := range []string{"light", "dark"} {
			p.Dark(theme == "dark")
			p.Audit(page.name + ", " + theme)
			d.picture(p, page.name, theme, 1280)
			p.Resize(phone, 844)
			if theme == "light" { // whatever fonts this machine has
				p.OtherFont(true)
			}
			p.Audit(page.name + ", " + theme + ", on a phone")
			p.OtherFont(false)
			d.picture(p, page.name, theme, phone)
			if theme == "light" {
				p.Resize(narrow, 780)
				p.Fits(page.name)
				speak(p, "de")
				p.Fits(page.name + ", German")
				speak(p, "en")
			}
			p.Resize(1280, 800)
		}
		p.Dark(false)
		p.Press("Escape")
		p.Gone("dialog[open]")
	}
	p.Open("#/")
	p.See(`tr[data-vehicle="12"]`)
	const cut = `[...document.querySelectorAll('th.plate, td:is(.contact, .doors, .energy)')].filter((e) => e.scrollWidth > e.clientWidth)
		.map((e) => e.textContent)`
	if values := consoletest.Value[[]string](p, cut); len(values) > 0 {
		t.Errorf("%q, which have room next to the map, end with …", values)
	}
	p.Until("the page with the map has one scroll bar, that of the list", `document.documentElement.scrollHeight <= innerHeight`)
	p.Resize(1440, 900)
	p.Until("as it is in a larger window", `document.documentElement.scrollHeight <= innerHeight`)
	speak(p, "de")
	if height := consoletest.Value[float64](p, `document.querySelector('.bar').offsetHeight`); height > 40 {
		t.Errorf("the German bar of the fleet is %g px high in a window of 1440 px, want one row", height)
	}
	speak(p, "en")
	p.Click("button", "Hide map") // a phone has room for one of the two
	for _, width := range []int64{1280, 1440, 1600} {
		p.Resize(width, 900)
		p.Until(fmt.Sprintf("each column of the fleet is in a window of %d px", width), `(({ scrollWidth, clientWidth }) =>
			scrollWidth <= clientWidth)(document.querySelector('.list'))`)
	}
	p.Open("#/attention")
	p.See(".numbers small", "offline")
	if lines := consoletest.Value[int](p, `(() => {
		const e = document.querySelector('.numbers small a');
		e.textContent = '132 offline';
		return e.getClientRects().length;
	})()`); lines != 1 {
		t.Errorf("the number of vehicles that are offline has %d lines", lines)
	}
	p.Open("#/activity?action=command.attention") // others add entries meanwhile
	p.See("td.note", "signal lights")
	p.Resize(1280, 800)
	if width := consoletest.Value[float64](p, `document.querySelector('td.note').offsetWidth`); width < 150 {
		t.Errorf("notes have %g px in a window of 1280 px", width)
	}
	p.Resize(narrow, 780)
	for path, names := range map[string]string{"#/": "tr[data-vehicle] .plate a", "#/bookings": "tr[data-booking] a"} {
		p.Open(path)
		p.See(names)
		covering := consoletest.Value[[]string](p, fmt.Sprintf(`(() => {
			for (const a of document.querySelectorAll('%s')) a.textContent = 'auth0|5f7c8ec7c33c6c004bbafe82';
			return [...document.querySelectorAll('tbody :is(th, td)')]
				.filter((e) => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === 'visible').map((e) => e.className);
		})()`, names))
		if len(covering) > 0 {
			t.Errorf("%s: long names cover what is next to them, in cells of the classes %q", path, covering)
		}
	}
}

// A window of 1280 by 1024 pixels, enlarged to 400 %, has 320 by 256; a phone's is higher.
func (d *desk) coversNoFocus(t *testing.T) {
	p := d.page(t, d.admin)
	for _, height := range []int64{256, 780} {
		p.Resize(narrow, height)
		p.Open("#/activity")
		p.See("td")
		p.Open("#/vehicles/11")
		p.See(`[data-action="maintenance"]`)
		p.TabTo(`[data-action="maintenance"]`)
		p.TabTo("[data-notes] button")
		p.TabTo(".choice button")
		p.Open("#/bookings")
		p.Click("button.toggle")
		p.TabTo("tr[data-booking] a") // out of the filters
		p.Gone(".filters.open")
	}
}

func (d *desk) drawsInForcedColours(t *testing.T) {
	p := d.page(t, d.admin)
	consoletest.ForceColors(p)
	p.Open("#/")
	p.Click("button", "Show map")
	p.See(`[data-map="drawn"]`)
	if n := pixels(p, color.NRGBA{0xf4, 0xf5, 0xf3, 0xff}); n < 10_000 { // --land
		t.Errorf("the map has %d pixels of land, want at least 10000", n)
	}
}

// speak chooses a language, as the menu does.
func speak(p *consoletest.Page, code string) {
	p.Helper()
	p.Do(fmt.Sprintf(`{ const s = document.querySelector('header select:has([value=%[1]s])');
		s.value = '%[1]s'; s.dispatchEvent(new Event('change', { bubbles: true })); }`, code))
	p.Until("the pages are "+code, fmt.Sprintf(`document.documentElement.lang === '%s'`, code))
}

func (d *desk) picture(p *consoletest.Page, name, theme string, width int) {
	if folder := os.Getenv(screenshots); folder != "" {
		p.Shoot(filepath.Join(folder, fmt.Sprintf("%s, %s, %d.png", name, theme, width)))
	}
}
