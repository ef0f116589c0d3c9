package service_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"motorpool/internal/app"
	"motorpool/internal/assert"
	"motorpool/operators"
	accounts "motorpool/store/operators"
	"motorpool/telematics"
)

// Over Postgres and Redis: limits and the end of a session hold at every instance.
func TestOperators_HoldAtEveryInstance(t *testing.T) {
	t.Parallel()
	s := startStack(t, 1)
	const password = "correct horse battery"
	store, by := accounts.Store{DB: s.owner}, telematics.OperatorAt("test")
	instances := []*instance{s.serve(withConsole), s.serve(withConsole)}
	_, err := store.Add(
		s.Context(),
		operators.Operator{
			Name: "anna", Role: operators.Viewer, Scopes: []string{"all_agencies"},
			Password: operators.HashPassword(password),
		},
		nil, by,
	)
	s.must(err)
	jar, err := cookiejar.New(nil)
	s.must(err)
	hers := &http.Client{Jar: jar}
	enter := func(client *http.Client, i *instance, password string) int {
		s.Helper()
		response, err := client.PostForm(i.base+"/auth/sign-in", url.Values{"name": {"anna"}, "password": {password}})
		s.must(err)
		defer response.Body.Close()
		return response.StatusCode
	}
	sees := func(i *instance) int {
		s.Helper()
		request, err := http.NewRequest(http.MethodGet, i.base+"/api/v1/admin/me", nil)
		s.must(err)
		// The jar sends the cookie with TLS alone.
		at, err := url.Parse(strings.Replace(instances[0].base, "http:", "https:", 1))
		s.must(err)
		for _, cookie := range jar.Cookies(at) {
			request.AddCookie(cookie)
		}
		response, err := http.DefaultClient.Do(request)
		s.must(err)
		defer response.Body.Close()
		return response.StatusCode
	}
	if status := enter(hers, instances[0], password); status != 200 {
		s.Fatalf("sign-in: %d", status)
	}
	if first, second := sees(instances[0]), sees(instances[1]); first != 200 || second != 200 {
		s.Errorf("signed in: %d at one instance, %d at the other", first, second)
	}
	refused := 0
	for n := 0; refused == 0 && n < 40; n++ {
		switch status := enter(http.DefaultClient, instances[n%2], "wrong"); status {
		case 429:
			refused = n
		case 401, 503: // where Redis is slow on a busy machine, nothing is tried
		default:
			s.Fatalf("a guess: %d", status)
		}
	}
	if refused < 9 {
		s.Errorf("refused after %d guesses, want at least 9", refused)
	}
	assert.Equal(s, enter(http.DefaultClient, instances[1], password), 429, "over the limit at the other instance")
	_, _, err = store.Remove(s.Context(), "anna", by)
	s.must(err)
	if first, second := sees(instances[0]), sees(instances[1]); first != 401 || second != 401 {
		s.Errorf("removed: %d at one instance, %d at the other", first, second)
	}
}

func withConsole(c *app.Config) { c.ConsoleURL = "http://127.0.0.1" }
