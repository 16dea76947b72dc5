// The least that a Node plugin must load.
import "@grpc/grpc-js";
import "protobufjs";
