package console_test

import (
	"testing"

	"motorpool/internal/assert"
	"motorpool/lab/consoletest"
)

func (d *desk) drawsAnArea(t *testing.T) {
	p := d.browser.Page(t, d.env["BASE_URL"], d.agency...)
	p.NeedAxe()
	p.Open("#/")
	p.See(`[data-map="drawn"][data-areas="2"]`)
	p.See(".fleet li", "No rental ends here")
	d.picture(p, "areas", "light", 1280)
	p.Click("button", "Areas")
	p.See(`[data-area="olympiapark"]`)
	p.Click("button", "New area")
	p.Type("harbour") // it has the focus
	p.Select(".fleet form select", "end_only")
	p.See(`section[data-drawable="true"]`)
	const canvas = ".maplibregl-canvas"
	clickAt := func(x, y float64) { p.Drag(canvas, x, y, x, y) }
	clickAt(0.4, 0.4)
	clickAt(0.6, 0.4)
	clickAt(0.6, 0.7)
	p.See(".fleet form p", "Click on the map")
	clickAt(0.6, 0.7) // again: it closes the border
	p.See(".fleet form p", "Drag positions")
	const text = `document.querySelector('.fleet form textarea').value`
	drawn := consoletest.Value[string](p, text)
	p.Drag(canvas, 0.4, 0.4, 0.3, 0.3)
	p.Until("the border that was moved", text+" !== "+"`"+drawn+"`")
	moved := consoletest.Value[string](p, text)
	for _, theme := range []string{"dark", "light"} { // the map is laid anew with each
		p.Dark(theme == "dark")
		p.See(`[data-map="drawn"]`)
		p.See(`section[data-drawable="true"]`)
		assert.Equal(t, consoletest.Value[string](p, text), moved, "the border in the %s map", theme)
		p.Audit("an area that is drawn, " + theme)
		d.picture(p, "area", theme, 1280)
	}
	p.Resize(narrow, 780)
	p.Fits("an area that is drawn")
	d.picture(p, "area", "light", narrow)
	p.Resize(1280, 800)
	p.Click("button", "Save")
	p.See(`section [role="status"]`, "The area harbour is in force.")
	p.See(`[data-areas="3"]`)

	const stored = `fetch('../api/v1/admin/agencies/1/areas/harbour')
		.then((r) => r.json()).then(({ data }) => data.kind + ' ' + data.points)`
	assert.Equal(t, consoletest.Value[string](p, stored), "end_only 4", "the area")
	p.Click(`[data-area="harbour"]`)
	p.See(`section[data-drawable="true"]`)
	// Another person has changed it meanwhile.
	const change = `fetch('../api/v1/admin/agencies/1/areas/harbour', { method: 'PUT', headers: { 'Content-Type': 'application/json' },
		body: JSON.stringify({ kind: 'operating', geometry: JSON.parse(document.querySelector('.fleet form textarea').value) }) })
		.then((r) => r.status)`
	if status := consoletest.Value[int](p, change); status != 200 {
		t.Fatalf("the change has the status %d, want 200", status)
	}
	p.Expect("status of 412")
	p.Click("button", "Save")
	p.See(`section [role="alert"]`, "The area was changed meanwhile")
	p.Click("button", "Cancel")
	p.Click(`[data-area="harbour"]`)
	p.Click("form button", "Remove")
	p.See("dialog[open]", "Remove the area harbour?")
	p.Audit("the removal of an area")
	p.Press("Tab", "Enter") // from Cancel
	p.See(`section [role="status"]`, "The area harbour is removed.")
	p.See(`[data-areas="2"]`)

	viewer := d.browser.Page(t, d.env["BASE_URL"], d.viewer...)
	viewer.Open("#/")
	viewer.See(`[data-map="drawn"]`)
	viewer.Gone("button", "Areas")
}
