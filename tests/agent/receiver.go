// SPDX-License-Identifier: BSD-2-Clause

// The third gRPC stack: a server of grpc-go, which is what Parca, Pyroscope and the Collector
// listen with. It reads the messages with a decoder of its own and prints a line for each request:
// method, window's start, elements of the seven tables, sum of the values.
// receiver.go [CERTIFICATE KEY]: prints its port first.
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip"
)

// Bytes as they are, under the name of the standard codec.
type raw struct{}

func (raw) Marshal(v interface{}) ([]byte, error) { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v interface{}) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
func (raw) Name() string { return "proto" }

var errCut = errors.New("cut or malformed message")

// The fields of a message: number, value of a scalar, bytes of a length-delimited one.
func fields(b []byte, each func(num int, value uint64, data []byte) error) error {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return errCut
		}
		b = b[n:]
		var value uint64
		var data []byte
		switch tag & 7 {
		case 0:
			if value, n = binary.Uvarint(b); n <= 0 {
				return errCut
			}
			b = b[n:]
		case 1:
			if len(b) < 8 {
				return errCut
			}
			value, b = binary.LittleEndian.Uint64(b), b[8:]
		case 2:
			size, n := binary.Uvarint(b)
			if n <= 0 || size > uint64(len(b)-n) {
				return errCut
			}
			data, b = b[n:n+int(size)], b[n+int(size):]
		default:
			return errCut
		}
		if err := each(int(tag>>3), value, data); err != nil {
			return err
		}
	}
	return nil
}

type request struct {
	tables [8]int
	time   uint64
	sum    uint64
}

func (r *request) profile(num int, value uint64, data []byte) error {
	switch num {
	case 2: // samples
		return fields(data, func(num int, _ uint64, data []byte) error {
			for num == 4 && len(data) > 0 {
				v, n := binary.Uvarint(data)
				if n <= 0 {
					return errCut
				}
				r.sum += v
				data = data[n:]
			}
			return nil
		})
	case 3:
		r.time = value
	}
	return nil
}

// down walks through the messages of one field after another.
func down(data []byte, path []int, each func(num int, value uint64, data []byte) error) error {
	if len(path) == 0 {
		return fields(data, each)
	}
	return fields(data, func(num int, _ uint64, data []byte) error {
		if num != path[0] {
			return nil
		}
		return down(data, path[1:], each)
	})
}

func parse(b []byte) (r request, err error) {
	if err = down(b, []int{1, 2, 2}, r.profile); err != nil {
		return
	}
	err = down(b, []int{2}, func(num int, _ uint64, _ []byte) error {
		if num < 1 || num > 7 {
			return errCut
		}
		r.tables[num]++
		return nil
	})
	return
}

func serve(_ interface{}, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	var b, empty []byte
	if err := stream.RecvMsg(&b); err != nil {
		return err
	}
	r, err := parse(b)
	if err != nil {
		fmt.Println("bad", err)
		return err
	}
	fmt.Println("got", method, r.time/1000000, r.sum, r.tables[1:])
	return stream.SendMsg(&empty)
}

func main() {
	encoding.RegisterCodec(raw{})
	opts := []grpc.ServerOption{grpc.UnknownServiceHandler(serve)}
	if len(os.Args) > 2 {
		creds, err := credentials.NewServerTLSFromFile(os.Args[1], os.Args[2])
		if err != nil {
			panic(err)
		}
		opts = append(opts, grpc.Creds(creds))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	if err := grpc.NewServer(opts...).Serve(l); err != nil {
		panic(err)
	}
}
