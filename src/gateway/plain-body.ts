import type { Transform } from "node:stream";
import { constants, createBrotliDecompress, createUnzip, createZstdDecompress } from "node:zlib";
import type { Answer, AnswerBody, BodyListener } from "./answer-body.ts";
import { GatewayError } from "./errors.ts";

/** Every byte that comes is given on at once, and a body that breaks off gives what it had. */
const ZLIB = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };
const BROTLI = { flush: constants.BROTLI_OPERATION_FLUSH, finishFlush: constants.BROTLI_OPERATION_FLUSH };
const ZSTD = { flush: constants.ZSTD_e_flush, finishFlush: constants.ZSTD_e_flush };

const DECODERS: ReadonlyMap<string, () => Transform> = new Map([
  // It tells the two by their first bytes.
  ["gzip", () => createUnzip(ZLIB)],
  ["x-gzip", () => createUnzip(ZLIB)],
  ["deflate", () => createUnzip(ZLIB)],
  ["br", () => createBrotliDecompress(BROTLI)],
  ["zstd", () => createZstdDecompress(ZSTD)],
]);

/**
 * The body of an answer as it was before anybody compressed it, which proxies do though they are asked not to. Throws
 * a `malformed` GatewayError, and leaves the answer, when it is compressed in a way that is not known.
 */
export function toPlainBody({ headers, body }: Answer): AnswerBody {
  // A header that was sent twice is a list, whatever its type says.
  const encoding = [headers["content-encoding"] ?? ""].flat().join().trim().toLowerCase();
  if (encoding === "" || encoding === "identity") return body;
  const createDecoder = DECODERS.get(encoding);
  if (createDecoder !== undefined) return decode(body, createDecoder());
  body.destroy();
  throw new GatewayError("malformed", "The gateway's answer is compressed, in a way that was not asked for.");
}

function decode(body: AnswerBody, decoder: Transform): AnswerBody {
  function leave(): void {
    decoder.removeAllListeners();
    // What it still finds wrong with the rest is nobody's business.
    decoder.on("error", () => {});
    decoder.destroy();
  }

  return {
    listen(listener) {
      pass(body, decoder, listener);
    },
    pause: () => void decoder.pause(),
    resume: () => void decoder.resume(),
    destroy() {
      leave();
      body.destroy();
    },
    drain() {
      leave();
      body.drain();
    },
  };
}

/** What the decoder has no room for waits in the connection, so that a small body can fill no memory. */
function pass(body: AnswerBody, decoder: Transform, listener: BodyListener): void {
  let broken: { error: unknown } | undefined;
  decoder.on("data", (bytes: Buffer) => listener.onData(bytes));
  decoder.on("drain", () => body.resume());
  decoder.on("end", () => (broken === undefined ? listener.onEnd() : listener.onError(broken.error)));
  decoder.on("error", (cause) => {
    body.destroy();
    listener.onError(
      new GatewayError("malformed", "The gateway's answer says that it is compressed, and cannot be read.", { cause }),
    );
  });
  body.listen({
    onData(bytes) {
      if (!decoder.destroyed && !decoder.write(bytes)) body.pause();
    },
    onEnd: () => void decoder.end(),
    onError(error) {
      broken = { error };
      decoder.end();
    },
  });
}
