package console_test

import (
	"testing"

	"motorpool/internal/require"
	"motorpool/lab/consoletest"
	"motorpool/store/pg"
	"motorpool/store/storetest"
)

func (d *desk) countsByTheServicesClock(t *testing.T) {
	p := d.page(t, d.admin)
	p.Before(`{ const system = Date, ahead = 3600_000;
		globalThis.Date = class extends system {
			constructor(...a) { super(...(a.length ? a : [system.now() + ahead])); }
			static now() { return system.now() + ahead; }
		}; }`)
	p.Open("#/")
	p.See("p", "The clock of this computer is 60 min fast.")
	if age := p.See(`[data-vehicle="1"]`); !consoletest.Value[bool](p,
		`!document.querySelector('[data-vehicle="1"]').innerText.includes('min ago')`) {
		t.Errorf("the row of a car that has just reported is %s, want no age in minutes", age)
	}
}

func (d *desk) saysWhatFailed(t *testing.T) {
	p := d.page(t, d.admin)
	p.Expect("status of 500", "ERR_CONNECTION_RESET")
	const failure = `{"success":false,"message":"The database is on fire.","data":null,"meta":null,"error":{"code":"internal_error",` +
		`"outcome":"not_executed"}}`
	p.Answer("GET", "/api/v1/admin/fleet", 500, failure)
	p.Open("#/")
	p.See(`[role="alert"]`, "The database is on fire.")
	p.Unanswer()
	p.See(`tr[data-vehicle="12"]`) // the console retries automatically
	p.Gone(`[role="alert"]`)

	p.Open("#/vehicles/3") // no other test has a command for it before all cars are locked
	p.See("dd")
	p.Answer("POST", "/control/lock", 500, failure)
	p.Click(`[data-action="lock"]`)
	p.See(`[role="alert"]`, "The database is on fire.")
	p.Unanswer()
	p.Answer("POST", "/control/lock", 0, "") // the car executes it, but the response is lost
	command := order(p, func() { p.Click(`[data-action="lock"]`) })
	p.See(`[role="alert"]`, "It is not known whether the request of ")
	p.Unanswer()
	p.Click(`[role="alert"] button`, "Try again")
	p.Gone(`[role="alert"]`)
	p.See(command + `[data-state="succeeded"]`)
	if n := consoletest.Value[int](p, `document.querySelectorAll('[data-command]').length`); n != 1 {
		t.Errorf("the repeated command is shown as %d commands, want 1", n)
	}

	p.Answer("GET", "/api/v1/admin/activity", 500, failure)
	p.Open("#/activity")
	p.See(`[role="alert"]`, "The database is on fire.")
	p.Unanswer()
}

// A closed page must not request the vehicle null.
func (d *desk) leavesAPageThatReads(t *testing.T) {
	p := d.page(t, d.admin)
	p.Open("#/")
	p.See(`tr[data-vehicle="12"]`)
	p.Do(`globalThis.held = []; globalThis.real = fetch;
		globalThis.fetch = async (...a) => { const r = await real(...a);
			if (a[0].includes('vehicles/3')) await new Promise((go) => held.push(go)); return r; };`)
	p.Open("#/vehicles/3")
	p.Until("its first answer is held", "held.length > 0")
	p.Open("#/tour")
	p.See("h1", "Tour")
	p.Do("globalThis.fetch = real; for (const go of held) go();")
	p.Until("it has read on", `performance.getEntriesByType('resource').some((r) => r.name.endsWith('/vehicles/3/commands?limit=10'))`)
}

func (d *desk) saysThatItIsNotLive(t *testing.T) {
	p := d.page(t, d.admin)
	p.Expect("ERR_INTERNET_DISCONNECTED")
	const slow = "#/vehicles/8" // its car answers after 20 s
	p.Open(slow)
	p.See("header", "Live")
	command := order(p, func() { p.Click(`[data-action="lock"]`) })
	p.See(command + `[data-state="sent"]`)
	p.Offline(true)
	p.See(`[role="alert"]`, "Not live since")
	p.See(`[role="alert"]`, "The service cannot be reached.")
	p.See("header", "Not live")
	p.See("body[data-stale]")
	p.See(command + hatched) // its outcome is not known
	p.Open("#/units")
	p.See("h1", "This page could not be loaded")
	p.Offline(false)
	p.Click("main button", "Load the page again")
	p.See("h1", "Units")
	p.See("header", "Live")
	p.Gone(`[role="alert"]`)
	p.Gone("body[data-stale]")
	p.Open(slow)
	p.See(command + `[data-state="succeeded"]`)
}

func (d *desk) worksWithoutWebGL(t *testing.T) {
	p := d.browser.Page(t, d.env["BASE_URL"], d.admin...)
	p.Before(`{ const real = HTMLCanvasElement.prototype.getContext;
		HTMLCanvasElement.prototype.getContext = function (kind, ...more) {
			return kind.startsWith('webgl') ? null : real.call(this, kind, ...more);
		}; }`)
	p.Open("#/")
	p.See(`[role="alert"]`, "There is no map, since this browser has no WebGL")
	p.See(`tr[data-vehicle="12"]`)
}

func (d *desk) saysThatAVehicleIsGone(t *testing.T) {
	p := d.page(t, d.agency)
	p.Expect("status of 404")
	p.Open("#/vehicles/10")
	p.See(`[data-action="lock"]`)
	db, err := pg.New(pg.Config{URL: d.env["MOTORPOOL_DATABASE_URL"]})
	require.NoError(t, err)
	defer db.Close()
	storetest.Exec(t, db.Pool, `update vehicles set agency_id = 2 where id = 10`)
	// The page may have read the vehicle again in the meantime.
	p.Do(`document.querySelector('[data-action="refresh"]')?.click()`)
	p.See(`[role="alert"]`, "There is no such vehicle any more")
	p.Gone(`[data-action="lock"]`)
	p.Open("#/")
	p.See(`[data-vehicle="8"]`)
	p.Gone(`[data-vehicle="10"]`)
}

func (d *desk) returnsAfterSigningIn(t *testing.T) {
	p, other := d.page(t, d.viewer), d.page(t, d.viewer)
	p.Expect("status of 401")
	other.Expect("status of 401")
	p.Open("#/activity?actor=admin&action=session.begin")
	p.See("td", "session.begin")
	p.Fill(".filter:nth-of-type(2) input", "operator")
	p.Press("Enter")
	other.Open("#/")
	other.Click("header button[popovertarget]")
	other.Click("button", "Sign out") // ends the session of both pages
	other.See("a, button", "Sign in")
	p.See("h1", "You are not signed in")
	p.Gone("td")
	p.SignIn(d.admin...)
	p.Load(d.env["BASE_URL"] + "/console/") // the address to which the issuer redirects
	p.See("h1", "Activity")
	p.See("td", "operator")
	p.Until("the same filters", `location.hash === '#/activity?actor=operator&action=session.begin'`)
}
