package service_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"motorpool/internal/app"
	"motorpool/internal/keyfile"
	"motorpool/internal/require"
	"motorpool/store/settings"
	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/signing"
)

// says waits until /readyz has a status and a text.
func (i *instance) says(status int, text string) {
	i.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		is, says := i.readiness()
		if is == status && strings.Contains(says, text) {
			return
		}
		if time.Now().After(deadline) {
			require.Late(i, "/readyz is %d and says %s; want %d with %q", is, says, status, text)
		}
	}
}

// An instance with a key that units do not hold is not ready: they would reject half of all
// commands. But where an operator switches keys by force, although units do not have the new one,
// and instances get the file one after the other, each is ready all the while.
func TestReady_WhereInstancesSignWithDifferentKeys(t *testing.T) {
	t.Parallel()
	s := embeddedStack(t, 2)
	right := s.serve()
	s.drive(nil, healthy)
	s.eventually(30*time.Second, "a command executed", func() bool { return right.control(1, telematics.Lock).status == http.StatusOK })
	s.newKey("other.jwks", false)
	wrong := s.serveUnready(func(c *app.Config) { c.SigningKeys = filepath.Join(s.dir, "other.jwks") })
	const reason = "this instance signs with the key"
	wrong.says(http.StatusServiceUnavailable, reason)
	// Nor does it send what units would reject, to callers that reach it all the same.
	wrong.control(1, telematics.Lock).wants(http.StatusServiceUnavailable, string(telematics.NotExecuted))
	if _, says := right.readiness(); strings.Contains(says, reason) {
		t.Errorf("the instance with the right key says %s", says)
	}
	wrong.stop()
	right.says(http.StatusOK, `"signing_key":"ok"`)

	file := filepath.Join(s.dir, "rotated.jwks")
	chain, err := keyfile.Read(s.config().SigningKeys)
	s.must(err)
	key, err := signing.NewKey()
	s.must(err)
	chain, err = chain.Add(key, time.Now())
	s.must(err)
	chain, err = chain.Activate(key.ID, time.Now())
	s.must(err)
	text, err := chain.Encode()
	s.must(err)
	s.must(os.WriteFile(file, text, 0o600))
	second := s.serve(func(c *app.Config) { c.SigningKeys = file })
	for range 15 {
		for name, i := range map[string]*instance{"old": right, "new": second} {
			// Another check may be slow.
			if _, says := i.readiness(); strings.Contains(says, reason) {
				t.Fatalf("the instance with the %s key says %s", name, says)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	right.stop()
	second.says(http.StatusOK, `"signing_key":"ok"`)
}

// A copy of the database for tests has the id of the installation and the name of its shared group.
// At the same MQTT broker and Redis it would take answers and overwrite states.
func TestServe_ACopyOfTheInstallationIsRefused(t *testing.T) {
	t.Parallel()
	s := startStack(t, 4)
	first := s.serve()
	s.drive(nil, healthy)
	group, err := settings.SharedGroup(s.Context(), s.owner)
	s.must(err)
	id, err := settings.Installation(s.Context(), s.owner)
	s.must(err)

	other := *s
	other.database = newDatabase(s.T)
	other.owner = storetest.OpenAsOwner(s.T, other.database)
	other.record()
	other.address = other.asRole()
	s.must(other.owner.Exec(s.Context(), `insert into settings (name, value) values ('installation', $1), ('mqtt_shared_group', $2)
			on conflict (name) do update set value = excluded.value`, id, group))
	second := other.serveUnready()
	second.says(http.StatusServiceUnavailable, "another installation uses it")
	for n := range 12 {
		if r := first.control(n%4+1, telematics.Lock); r.status != http.StatusOK && !r.starved() {
			s.Errorf("command %d of the first installation: %d %s", n, r.status, r.text)
		}
		if status, says := second.readiness(); status == http.StatusOK {
			s.Fatalf("the copy is ready: %s", says)
		}
	}
	second.control(1, telematics.Unlock).wants(http.StatusServiceUnavailable)
	for _, place := range []string{"mqtt", "redis"} {
		if second.metric(`motorpool_other_installation{place="`+place+`"}`) != 1 {
			s.Errorf("the copy's metric of %s does not tell of the other installation", place)
		}
	}
	s.eventually(
		10*time.Second, "the first installation's metric tells of the copy",
		func() bool { return first.metric(`motorpool_other_installation{place="mqtt"}`) == 1 },
	)
	// An instance more of the first one is at home.
	third := s.serve()
	third.says(http.StatusOK, "ready")
}
