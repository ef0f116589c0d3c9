package unavailable

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/lib/pq"
	"github.com/redis/go-redis/v9"

	"motorpool/telematics"
)

// reply is an error that Redis returns.
type reply string

func (r reply) Error() string { return string(r) }
func (r reply) RedisError()   {}

func TestWrap_MarksErrorsOfUnavailableServers(t *testing.T) {
	for err, want := range map[error]bool{
		&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}: true,
		&net.DNSError{IsNotFound: true}:                     true,
		io.EOF:                                              true,
		io.ErrUnexpectedEOF:                                 true,
		driver.ErrBadConn:                                   true,
		context.DeadlineExceeded:                            true,
		redis.ErrPoolTimeout:                                true,
		&tls.CertificateVerificationError{Err: io.ErrNoProgress}: true,
		&pq.Error{Code: "08006"}:                                 true, // connection failure
		&pq.Error{Code: "53300"}:                                 true, // too many connections
		&pq.Error{Code: "57P01"}:                                 true, // admin shutdown
		&pq.Error{Code: "57P03"}:                                 true, // cannot connect now
		&pq.Error{Code: "57014"}:                                 true, // statement timeout
		&pq.Error{Code: "25006"}:                                 true, // read only
		&pq.Error{Code: "28P01"}:                                 true, // wrong password
		&pq.Error{Code: "3D000"}:                                 true, // no such database
		&pq.Error{Code: "42501"}:                                 true, // the role lacks a right
		reply("LOADING Redis is loading the dataset in memory"):  true,
		reply("CLUSTERDOWN Hash slot not served"):                true,
		reply("ERR max number of clients reached"):               true,
		// Redis 6.2, in a script.
		reply("ERR Error running script (f_7): @user_script:5: @user_script: 5: -OOM command not allowed when memory"): true,
		reply("ERR Error running script (f_7): @user_script:5: @user_script: 5: -READONLY You can't write to it"):      true,
		reply("ERR Error running script (f_7): @user_script:5: WRONGTYPE Operation"):                                   false,

		context.Canceled:                false, // the caller left
		errors.New("a defect"):          false,
		&pq.Error{Code: "23505"}:        false, // unique violation
		&pq.Error{Code: "42601"}:        false, // syntax error
		reply("WRONGTYPE Operation"):    false,
		telematics.NoSuchVehicle(1):     false,
		telematics.Unavailable("", nil): false,
	} {
		wrapped := fmt.Errorf("handle request: %w", Wrap("read vehicle", err))
		if Is(wrapped) != want || !errors.Is(wrapped, err) {
			t.Errorf("Is(%v) = %v, want %v", wrapped, !want, want)
		}
		var unavailable interface{ Unavailable() bool }
		if errors.As(wrapped, &unavailable) != want {
			t.Errorf("%v: errors.As and Is disagree", wrapped)
		}
	}
	if Wrap("read vehicle", nil) != nil || Is(nil) {
		t.Error("a nil error became an error")
	}
}
