/** A read of all streams that the server filters by their names. The client can subscribe with a filter, and not read with one. */
import shared from "@eventstore/db-client/generated/shared_pb.js";
import streams from "@eventstore/db-client/generated/streams_pb.js";

/** Forward from a commit position (inclusive; 0: the start), at most `max` events of streams that begin with one of `prefixes`. */
export function filteredRead(from: number, prefixes: readonly string[], max: number): streams.ReadReq {
  const { Options } = streams.ReadReq;
  const names = new Options.FilterOptions.Expression();
  names.setPrefixList([...prefixes]);
  const filter = new Options.FilterOptions();
  filter.setStreamIdentifier(names);
  filter.setCount(new shared.Empty());
  filter.setCheckpointintervalmultiplier(1);
  const place = new Options.AllOptions();
  if (from <= 0) place.setStart(new shared.Empty());
  else place.setPosition(positionAt(from));
  const ids = new Options.UUIDOption();
  ids.setString(new shared.Empty());
  const options = new Options();
  options.setAll(place);
  options.setReadDirection(Options.ReadDirection.FORWARDS);
  options.setResolveLinks(false);
  options.setCount(String(max));
  options.setFilter(filter);
  options.setUuidOption(ids);
  const request = new streams.ReadReq();
  request.setOptions(options);
  return request;
}

function positionAt(commit: number): streams.ReadReq.Options.Position {
  const position = new streams.ReadReq.Options.Position();
  position.setCommitPosition(String(commit));
  position.setPreparePosition(String(commit));
  return position;
}
