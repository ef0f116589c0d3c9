package service_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"testing"
	"time"

	"motorpool/httpapi/signin"
	"motorpool/lab/consoletest"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/store/redis"
	"motorpool/telematics"
)

// signIn returns the cookies of a console session at an instance.
func (s *stack) signIn(i *instance) []*http.Cookie {
	s.Helper()
	cache, err := redis.New(redis.Config{URL: s.redisURL})
	s.must(err)
	defer cache.Close()
	address, err := url.Parse(i.base)
	s.must(err)
	offers, err := signin.New(signin.Config{Store: redis.NewSessions(cache), URL: address})
	s.must(err)
	code, err := offers.Offer(s.Context(), i.admin, time.Minute)
	s.must(err)
	return consoletest.SignIn(s.T, i.base+"/auth/once?code="+code)
}

// While the service or Redis is unavailable, the console marks what it shows as past.
func TestConsole_ShowsNothingStaleAsFresh(t *testing.T) {
	t.Parallel()
	browser := consoletest.Open(t)
	s := realStack(t, 1)
	port, err := devstack.FreePort()
	s.must(err)
	config := s.config()
	config.HTTP = fmt.Sprintf("127.0.0.1:%d", port) // the same address after a restart
	config.ConsoleURL = "http://" + config.HTTP
	i := s.serveChild(config, exec.Command(os.Args[0]))
	s.drive(nil, func(telematics.VehicleID) simulator.Profile {
		return simulator.Profile{Actions: simulator.AllActions, Latency: simulator.Between(4*time.Second, 5*time.Second)}
	})
	p := browser.Page(t, i.base, s.signIn(i)...)
	p.Expect(
		"ERR_CONNECTION_REFUSED", "ERR_EMPTY_RESPONSE", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET",
		"status of 503", "status of 401",
	)
	p.Open("#/vehicles/1")
	p.See("header", "Live")

	p.Click(`[data-action="lock"]`)
	p.See(`[data-command][data-state="sent"]`)
	i.stop() // kill -9
	p.See(`[role="alert"]`, "Not live since")
	p.See(`[role="alert"]`, "The service cannot be reached.")
	p.See("body[data-stale]")
	// The outcome is still unknown.
	p.See(`[data-command][data-state="sent"] svg rect[fill^="url(#"]`)
	s.serveChild(config, exec.Command(os.Args[0]))
	p.See("header", "Live")
	p.Gone(`[role="alert"]`)
	p.Gone("body[data-stale]")
	p.See(`[data-command][data-state="succeeded"]`)

	s.must(s.redis.Pause())
	p.See(`[role="alert"]`, "Not live since")
	p.See("body[data-stale]")
	p.Click(`[data-action="lock"]`)
	p.See(".problem", "The service is unavailable.")
	s.must(s.redis.Resume())
	p.See("header", "Live")
	p.Gone("body[data-stale]")

	s.must(s.redis.Restart()) // the sessions are lost
	p.See("h1", "You are not signed in")
	p.Gone("[data-command]")
}
