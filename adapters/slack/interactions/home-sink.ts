import type { ReplyAddress } from "../../../src/port/events.ts";
import type { ReplySink } from "../../../src/port/sink.ts";
import { readExtra } from "../address.ts";
import type { Surfaces } from "../listen/surfaces.ts";

/** The sink of an address; where a home asked, that is drawn again once the answer stands, with what came of it. */
export function withHome(sink: ReplySink, address: ReplyAddress, redrawHome: Surfaces["redrawHome"]): ReplySink {
  const { team: teamId, user: userId, isFromHome } = readExtra(address);
  if (isFromHome === undefined || userId === undefined) return sink;
  const home = { teamId, userId, channelId: address.channelId };

  function following<A extends unknown[], T>(write: (...args: A) => Promise<T>): (...args: A) => Promise<T> {
    return async (...args) => {
      const written = await write(...args);
      void redrawHome(home);
      return written;
    };
  }

  const { post, postAnew } = sink;
  return { ...sink, post: following(post), ...(postAnew && { postAnew: following(postAnew) }) };
}
