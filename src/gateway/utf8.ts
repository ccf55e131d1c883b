import { StringDecoder } from "node:string_decoder";

const FIRST_NON_ASCII = 0x80;

/** Turns bytes into text, whatever places they are cut at. */
export type DecodeUtf8 = (bytes: Buffer) => string;

/**
 * A decoder that keeps a character that was cut for the next bytes. Most events of a gateway come whole, so that nothing
 * is kept: then the bytes are read in place, in half the time.
 */
export function createUtf8Decoder(): DecodeUtf8 {
  const decoder = new StringDecoder("utf8");
  /** The last byte was a character of its own, so that nothing is kept. */
  let isClear = true;

  return (bytes) => {
    const wasClear = isClear;
    if (bytes.length > 0) isClear = (bytes[bytes.length - 1] ?? 0) < FIRST_NON_ASCII;
    return wasClear && isClear ? bytes.toString("utf8") : decoder.write(bytes);
  };
}
