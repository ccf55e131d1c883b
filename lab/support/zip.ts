import { crc32, deflateRawSync } from "node:zlib";

export interface Packed {
  /** The size that the archive states, if it is not the real one. */
  sizeBytes?: number;
  isEncrypted?: boolean;
}

export function toZip(files: Readonly<Record<string, string | Uint8Array>>, stated: Packed = {}): Buffer {
  const parts: Uint8Array[] = [];
  const directory: Uint8Array[] = [];
  let offset = 0;
  for (const [name, content] of Object.entries(files)) {
    const bytes = Buffer.from(content);
    const packed = deflateRawSync(bytes);
    const title = Buffer.from(name);
    const about = Buffer.alloc(26);
    about.writeUInt16LE(20, 0);
    about.writeUInt16LE(stated.isEncrypted ? 1 : 0, 2);
    about.writeUInt16LE(8, 4);
    about.writeUInt32LE(crc32(bytes), 10);
    about.writeUInt32LE(packed.byteLength, 14);
    about.writeUInt32LE(stated.sizeBytes ?? bytes.byteLength, 18);
    about.writeUInt16LE(title.byteLength, 22);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(offset, 10);
    parts.push(Buffer.from("PK\x03\x04"), about, title, packed);
    directory.push(Buffer.from("PK\x01\x02\x14\0", "latin1"), about, place, title);
    offset += 30 + title.byteLength + packed.byteLength;
  }
  const list = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(Object.keys(files).length, 8);
  end.writeUInt16LE(Object.keys(files).length, 10);
  end.writeUInt32LE(list.byteLength, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, list, end]);
}
