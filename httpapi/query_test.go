package httpapi_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// A filter that cannot be parsed must not be left out, which would widen the answer.
func TestQuery_MalformedIsRefused(t *testing.T) {
	for _, target := range []string{
		"/api/v1/admin/vehicles?agency_id=2;",
		"/api/v1/admin/activity?vehicle_id=%zz",
		"/api/v1/admin/activity?vehicle_id=42;limit=5",
		"/api/v1/admin/activity?vehicle_id=1&vehicle_id=2",
	} {
		newAPI(t).get(target).wants(422, "validation_failed")
	}
}

func TestQuery_MalformedIsRefusedByRoutesWithoutParameters(t *testing.T) {
	newPurse(t).asClient(http.MethodGet, methods+"?x=%zz").wants(422, "validation_failed")
	newBookingAPI(t).asClient(http.MethodGet, "/api/v1/client/bookings/42?x=%zz").wants(422, "validation_failed")
}

func TestCommands_OfAFormerAgencyDoNotCountForPages(t *testing.T) {
	a := newAPI(t)
	for seq := range int64(4) {
		c := settled(delivery.Order{Vehicle: 42, Action: telematics.Lock}, telematics.Succeeded)
		c.ID, c.Agency, c.Seq = uuid.New(), 2, 1000+seq // of before the vehicle came to agency 1
		a.fleet.commands = append(a.fleet.commands, c)
	}
	r := a.get("/api/v1/admin/vehicles/42/commands?limit=1", ofAgency(1))
	same[any](t, r.body.Meta["next_cursor"], nil, "an empty list has the next page")
}

func TestBody_TooLargeIsRefusedBeforeItIsSent(t *testing.T) {
	server := httptest.NewServer(newAPI(t).handler)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_ = must(io.WriteString(conn, "POST /api/v1/admin/vehicles/1/control/lock HTTP/1.1\r\nHost: x\r\nContent-Length: 70000\r\n\r\n"))
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "413") {
		t.Errorf("answered %q, %v; want 413", line, err)
	}
}
