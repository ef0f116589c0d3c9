package main

import (
	"context"
	"net/http"
	"os"

	"github.com/labstack/echo/v4"
)

// answer is the floor of reading: a process with the service's HTTP library that has the answer at hand, and nothing else to do.
type answer struct {
	Body string `type:"existingfile"`
}

func (a answer) Run(ctx context.Context) error {
	body, err := os.ReadFile(a.Body)
	if err != nil {
		return err
	}
	e := echo.New()
	e.GET("/api/v1/admin/vehicles/:vehicle/status", func(c echo.Context) error {
		return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, body)
	})
	return serveUntil(attended(ctx), e)
}
