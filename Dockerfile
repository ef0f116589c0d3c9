# The service, the operator's tool and the simulated fleet in one small image.
FROM golang:1.26-alpine AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /bin/ ./cmd/motorpool ./cmd/simulate

FROM alpine:3.22
RUN adduser -D -u 10001 motorpool
COPY --from=build /bin/motorpool /bin/simulate /usr/local/bin/
USER motorpool
EXPOSE 8080 8081
ENTRYPOINT ["motorpool"]
CMD ["serve"]
