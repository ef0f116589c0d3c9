package httpapi

import (
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/labstack/echo/v4"

	"motorpool/telematics"
)

// recoverPanic turns a panic into the error that its caller may see; the log gets the stack.
func (s *server) recoverPanic(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			switch r := recover(); r {
			case nil:
			case http.ErrAbortHandler: // asks net/http to drop the connection
				panic(r)
			default:
				callOf(c).stack = debug.Stack()
				err = telematics.Broken(fmt.Errorf("panic: %v", r))
			}
		}()
		return next(c)
	}
}
