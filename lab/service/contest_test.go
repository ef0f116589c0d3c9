package service_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/rental/stripe"
)

func TestBooking_OneOfTwoConcurrentOverlappingBookingsSucceeds(t *testing.T) {
	t.Parallel()
	rentOneStack(t, 1, func(r *rentals) {
		instances := []*instance{r.open(), r.serve(r.paid)}
		rivals := []customer{r.newCustomer(), r.newCustomer()}
		for n, c := range rivals {
			c.add(instances[n], "pm_card_visa", true)
		}
		const rounds = 10
		for round := range rounds {
			when := fromNow(time.Duration(round) * 24 * time.Hour)
			answers := make([]answer, len(rivals))
			var racing sync.WaitGroup
			for n, c := range rivals {
				// The two times overlap.
				late := hours{when.from.Add(time.Duration(n) * time.Hour), when.to.Add(time.Duration(n) * time.Hour)}
				racing.Go(func() {
					answers[n] = instances[n].asAdmin(http.MethodPost, "/api/v1/admin/bookings", c.draft(1, late, ""))
				})
			}
			racing.Wait()
			slices.SortFunc(answers, func(a, b answer) int { return a.status - b.status })
			answers[0].wants(201, "")
			answers[1].wants(409, "vehicle_not_available").has("message", `"The vehicle has another booking in that time."`, "error.retryable", "false")
		}
		if n := r.rows(`select count(*) from bookings`); n != rounds {
			r.Errorf("%d bookings after %d races", n, rounds)
		}
		if n := r.rows(`select count(*) from activity where action = 'booking.create' and code = 'vehicle_not_available' and outcome = 'not_executed'`); n != rounds {
			r.Errorf("%d audit entries of refused bookings, want %d", n, rounds)
		}
	})
}

// wallet is what must be on record by the responses to a client.
type wallet struct {
	mu      sync.Mutex
	added   map[int64]bool
	removed map[int64]bool
	counts  map[string]int // numbers of responses
}

func (w *wallet) note(what string, a answer, id int64, allowed ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := fmt.Sprintf("%d %s", a.status, a.code())
	w.counts[what+" "+said]++
	if !slices.Contains(allowed, strings.TrimSpace(said)) {
		a.Errorf("%s: unexpected response %s", a.asked, a.text)
	}
	switch {
	case what == "add" && a.status < 300:
		w.added[a.number("data.id")] = true
	case what == "remove" && a.status == 200:
		if w.removed[id] {
			a.Errorf("%d was removed twice", id)
		}
		w.removed[id] = true
	}
}

// any returns a card that may be present.
func (w *wallet) any() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.added {
		if !w.removed[id] || rand.IntN(10) == 0 {
			return id
		}
	}
	return 1
}

// The test loads the machine, so it runs alone.
func TestMethods_AlwaysExactlyOneDefault(t *testing.T) {
	const calls, hands = 200, 12
	rentOneStack(t, 1, func(r *rentals) {
		instances := []*instance{r.open(), r.serve(r.paid)}
		c := r.newCustomer()
		w := &wallet{added: map[int64]bool{}, removed: map[int64]bool{}, counts: map[string]int{}}
		for _, card := range tenCards[:3] {
			w.added[c.add(instances[0], card, false)] = true
		}

		done := make(chan struct{})
		looks := 0
		var looking sync.WaitGroup
		looking.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				c.oneDefault(instances[looks%2])
				looks++
			}
		})
		work := make(chan int)
		var working sync.WaitGroup
		for range hands {
			working.Go(func() {
				for n := range work {
					i, id := instances[n%2], w.any()
					switch n % 4 {
					case 0, 1:
						body := fmt.Sprintf(`{"payment_method_id":%q,"set_default":%t}`, tenCards[rand.IntN(len(tenCards))], n%4 == 0)
						w.note("add", c.post(i, "/payment-methods", body), 0, "201", "200")
					case 2:
						w.note("default", c.post(i, fmt.Sprintf("/payment-methods/%d/default", id), ""), id, "200", "404 payment_method_not_found")
					case 3:
						w.note("remove", c.remove(i, fmt.Sprintf("/payment-methods/%d", id)), id, "200", "400 default_payment_method", "404 payment_method_not_found")
					}
				}
			})
		}
		for n := range calls {
			work <- n
		}
		close(work)
		working.Wait()
		close(done)
		looking.Wait()

		for _, i := range instances {
			left := c.oneDefault(i)
			for id := range w.added {
				if there := left[id]; there == w.removed[id] {
					r.Errorf("method %d: present %v, removed %v", id, there, w.removed[id])
				}
				delete(left, id)
			}
			if len(left) > 0 {
				r.Errorf("no notice arrived for the methods %v", left)
			}
		}
		r.allAttached()
		if w.counts["add 201 "] < 3 || w.counts["remove 200 "] == 0 || w.counts["default 200 "] == 0 || looks < 10 {
			r.Errorf("too few events for a valid test: %v, %d snapshots", w.counts, looks)
		}
		r.Logf("%d snapshots during %v", looks, w.counts)
	})
}

// allAttached checks that the processor has every card on record.
func (r *rentals) allAttached() {
	r.Helper()
	processor := stripe.New(stripe.Config{Key: r.processor.Key(), BaseURL: r.processor.URL(), Logger: r.log})
	defer processor.Close()
	rows, err := r.db.QueryContext(r.Context(), `select token, customer from payment_methods m join clients c on c.id = m.client_id`)
	r.must(err)
	defer rows.Close()
	for rows.Next() {
		var token, customer string
		r.must(rows.Scan(&token, &customer))
		if _, bound, err := processor.Card(r.Context(), token); err != nil || bound != customer {
			r.Errorf("the card %s on record is bound to %q, %v; want %s", token, bound, err, customer)
		}
	}
	r.must(rows.Err())
}

// oneDefault checks that exactly one of the client's methods is the default, and returns all
// methods.
func (c customer) oneDefault(i *instance) map[int64]bool {
	i.Helper()
	there, defaults := map[int64]bool{}, 0
	a := c.get(i, "/payment-methods").wants(200, "")
	for n := range a.list("data") {
		there[a.number(fmt.Sprintf("data.%d.id", n))] = true
		if a.at(fmt.Sprintf("data.%d.is_default", n)) == true {
			defaults++
		}
	}
	if defaults != 1 || len(there) > 10 {
		i.Errorf("%d defaults among %d methods: %s", defaults, len(there), a.text)
	}
	return there
}
