package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"motorpool/internal/assert"
	"motorpool/lab/consoletest"
	"motorpool/simulator/devstack"
)

// appServer serves the built client package for TypeScript, as the server of a web app does, and
// returns its origin.
func appServer(t *testing.T) string {
	const built = "../../clients/typescript/dist/src" // .ci/npm clients/typescript build
	_, err := os.Stat(built + "/index.js")
	devstack.Need(t, err)
	files := http.FileServer(http.Dir(built))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			files.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><title>An app</title><link rel="icon" href="data:,">`)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Car 4 is free: the rental of the other test has ended.
func (d *desk) rentsInAWebApp(t *testing.T, app string) {
	p := d.browser.Page(t, app)
	p.Expect("the page requests "+d.env["BASE_URL"]+"/api/v1/client/", "status of 409")
	p.Load(app)
	got := consoletest.Value[string](p, fmt.Sprintf(`(async () => {
		const { Motorpool, MotorpoolError, move } = await import('/index.js');
		const api = new Motorpool({ baseUrl: '%s', token: '%s', sign: { id: '%s', secret: '%s' } });
		const now = Date.now();
		const time = { start_date: new Date(now).toISOString(), end_date: new Date(now + 3_600_000).toISOString() };
		const { data: booking } = await api.post('bookings', { body: { vehicle_id: 4, ...time } });
		const [path, key] = [{ booking: booking.id }, crypto.randomUUID()];
		const { location } = await api.post('bookings/{booking}/start', { path, key, prefer: 'respond-async' });
		if (!location) return 'the Location of the start cannot be read';
		const kinds = new Set();
		const { status } = await move(api, 'start', booking.id, { key }); // as after the app was closed
		for (const kind of ['pause', 'resume', 'end'])
			await move(api, kind, booking.id, { onChange: (t) => t.state === 'done' && kinds.add(t.kind) });
		const { data: ended } = await api.get('bookings/{booking}', { path: { booking: booking.id } });
		const late = await move(api, 'end', booking.id).catch((e) => e instanceof MotorpoolError ? e.code : String(e));
		return [status, ...kinds, ended.status, late].join();
	})()`, d.env["BASE_URL"], d.env["CLIENT_TOKEN"], d.env["AGENCY_KEY_ID"], d.env["AGENCY_SECRET"]))
	assert.Equal(t, got, "active,pause,resume,end,completed,booking_not_active", "the app gets")
}
