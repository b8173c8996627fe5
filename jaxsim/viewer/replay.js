"use strict";
// A small WebGL 2 renderer that replays a trajectory of geom poses. Everything it draws is in the page.

const scene = JSON.parse(document.getElementById("scene").textContent);
const $ = (id) => document.getElementById(id);
const TYPES = { f32: Float32Array, i16: Int16Array, i8: Int8Array, u32: Uint32Array };

async function decode(blob) {
  const text = atob(blob.data), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  if (!blob.deflate) return new TYPES[blob.type](bytes.buffer);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new TYPES[blob.type](await new Response(stream).arrayBuffer());
}

// ---- vectors and 4x4 matrices (column-major) ----
const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const add = (a, b, s = 1) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = (a) => { const n = Math.hypot(...a) || 1; return [a[0] / n, a[1] / n, a[2] / n]; };

function multiply(a, b) {
  const c = new Float32Array(16);
  for (let j = 0; j < 4; j++) for (let i = 0; i < 4; i++) {
    let s = 0;
    for (let k = 0; k < 4; k++) s += a[4 * k + i] * b[4 * j + k];
    c[4 * j + i] = s;
  }
  return c;
}

function lookAt(eye, center, up) {
  const z = unit(sub(eye, center)), x = unit(cross(up, z)), y = cross(z, x);
  return new Float32Array([x[0], y[0], z[0], 0, x[1], y[1], z[1], 0, x[2], y[2], z[2], 0,
    -dot(x, eye), -dot(y, eye), -dot(z, eye), 1]);
}

function perspective(fovy, aspect, near, far) {
  const f = 1 / Math.tan(fovy / 2), d = 1 / (near - far);
  return new Float32Array([f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) * d, -1, 0, 0, 2 * far * near * d, 0]);
}

function orthographic(r, near, far) {
  return new Float32Array([1 / r, 0, 0, 0, 0, 1 / r, 0, 0, 0, 0, -2 / (far - near), 0,
    0, 0, -(far + near) / (far - near), 1]);
}

function poseMatrix(p, q) {
  const [w, x, y, z] = q;
  return new Float32Array([
    1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y), 0,
    2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x), 0,
    2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y), 0, p[0], p[1], p[2], 1]);
}

// ---- shapes: interleaved position, normal, texture coordinate ----
// A surface of revolution around z with poles: (radius, height, normal's radius, normal's height) from top to bottom.
function revolve(profile, slices = 28) {
  const out = [];
  const vertex = (row, k) => {
    const a = 2 * Math.PI * k / slices, c = Math.cos(a), s = Math.sin(a), [r, h, nr, nh] = profile[row];
    out.push(r * c, r * s, h, nr * c, nr * s, nh, k / slices, row / (profile.length - 1));
  };
  for (let i = 0; i + 1 < profile.length; i++) for (let k = 0; k < slices; k++) {
    vertex(i, k); vertex(i + 1, k); vertex(i + 1, k + 1);
    vertex(i, k); vertex(i + 1, k + 1); vertex(i, k + 1);
  }
  return out;
}

function arc(radius, from, to, steps, height = 0) {
  return Array.from({ length: steps + 1 }, (_, i) => {
    const a = from + (to - from) * i / steps, c = Math.max(Math.cos(a), 0), s = Math.sin(a);
    return [radius * c, radius * s + height, c, s];
  });
}

const SHAPES = {
  sphere: ([r]) => revolve(arc(r, Math.PI / 2, -Math.PI / 2, 18)),
  capsule: ([r, h]) => revolve([...arc(r, Math.PI / 2, 0, 9, h), ...arc(r, 0, -Math.PI / 2, 9, -h)]),
  cylinder: ([r, h]) => revolve([[0, h, 0, 1], [r, h, 0, 1], [r, h, 1, 0], [r, -h, 1, 0], [r, -h, 0, -1], [0, -h, 0, -1]]),
  ellipsoid: (size) => {
    const v = revolve(arc(1, Math.PI / 2, -Math.PI / 2, 20), 32);
    for (let i = 0; i < v.length; i += 8) {
      const n = unit([v[i] / size[0], v[i + 1] / size[1], v[i + 2] / size[2]]);
      for (let k = 0; k < 3; k++) { v[i + k] *= size[k]; v[i + 3 + k] = n[k]; }
    }
    return v;
  },
  box: (size) => {
    const out = [];
    for (let axis = 0; axis < 3; axis++) for (const side of [-1, 1]) {
      const u = (axis + 1) % 3, w = (axis + 2) % 3;
      const corner = (a, b) => {
        const p = [0, 0, 0], n = [0, 0, 0];
        p[axis] = side * size[axis]; p[u] = a * size[u]; p[w] = b * size[w]; n[axis] = side;
        out.push(...p, ...n, (a + 1) / 2, (b + 1) / 2);
      };
      const ring = side > 0 ? [[-1, -1], [1, -1], [1, 1], [-1, -1], [1, 1], [-1, 1]]
        : [[-1, -1], [1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]];
      for (const [a, b] of ring) corner(a, b);
    }
    return out;
  },
  plane: ([x, y]) => {
    const out = [];
    for (const [a, b] of [[-1, -1], [1, -1], [1, 1], [-1, -1], [1, 1], [-1, 1]]) {
      out.push(a * x, b * y, 0, 0, 0, 1, (a + 1) / 2, (b + 1) / 2);
    }
    return out;
  },
};

// ---- WebGL ----
const canvas = $("view");
const gl = canvas.getContext("webgl2", { antialias: true, preserveDrawingBuffer: true });
if (!gl) throw new Error("this browser has no WebGL 2");

const VERTEX = `#version 300 es
layout(location=0) in vec3 position; layout(location=1) in vec3 normal; layout(location=2) in vec2 coord;
uniform mat4 model, viewProjection, light;
out vec3 vWorld, vNormal; out vec4 vLight; out vec2 vLocal, vCoord;
void main() {
  vec4 world = model * vec4(position, 1.0);
  vWorld = world.xyz; vNormal = mat3(model) * normal; vLocal = position.xy; vCoord = coord;
  vLight = light * vec4(world.xyz + 0.004 * vNormal, 1.0);
  gl_Position = viewProjection * world;
}`;

const FRAGMENT = `#version 300 es
precision highp float; precision highp sampler2DShadow;
in vec3 vWorld, vNormal; in vec4 vLight; in vec2 vLocal, vCoord;
uniform vec4 color; uniform vec3 eye, axis, horizon; uniform vec4 shine; uniform int pattern;
// kind of a light: 0 at the camera, 1 directional, 2 a spot; cone: cosine of its half angle, exponent
uniform int lightCount, shadowLight, lightKind[8];
uniform vec3 lightPos[8], lightDir[8], ambient[8], diffuse[8], specular[8], attenuation[8];
uniform vec2 cone[8];
uniform vec2 repeat; uniform float fade, shadowsOn, shadowTexel;
uniform sampler2D image; uniform sampler2DShadow shadowMap;
out vec4 outColor;
float lit() {
  vec3 p = vLight.xyz / vLight.w * 0.5 + 0.5;
  if (shadowsOn < 0.5 || any(lessThan(p, vec3(0.0))) || any(greaterThan(p, vec3(1.0)))) return 1.0;
  float sum = 0.0;
  for (int i = -1; i <= 1; i++) for (int j = -1; j <= 1; j++)
    sum += texture(shadowMap, vec3(p.xy + vec2(i, j) * shadowTexel, p.z - 0.0015));
  float edge = smoothstep(0.5, 0.42, max(abs(p.x - 0.5), abs(p.y - 0.5)));
  return mix(1.0, sum / 9.0, edge);
}
void main() {
  vec3 base = vec3(1.0);
  if (pattern == 2) base *= texture(image, vLocal * repeat).rgb;
  if (pattern == 3) base *= texture(image, vCoord * repeat).rgb;
  vec3 n = normalize(vNormal), toEye = normalize(eye - vWorld);
  if (dot(n, toEye) < 0.0 && pattern != 2) n = -n;
  vec3 c = color.rgb * (lightCount > 0 ? shine.z : shine.z + 0.3);
  for (int i = 0; i < lightCount; i++) {
    vec3 way = lightKind[i] == 0 ? -axis : -lightDir[i];
    float strength = 1.0;
    if (lightKind[i] == 2) {
      vec3 offset = lightPos[i] - vWorld;
      float d = length(offset), cosine;
      way = offset / max(d, 1e-6);
      cosine = max(dot(-way, lightDir[i]), 1e-6);
      strength = cosine < cone[i].x ? 0.0 : pow(cosine, cone[i].y) / max(dot(attenuation[i], vec3(1.0, d, d * d)), 1e-6);
    }
    if (i == shadowLight) strength *= lit();
    float facing = dot(n, way);
    vec3 mine = ambient[i] * color.rgb;
    if (facing > 0.0) {
      float polish = pow(max(dot(n, normalize(way + toEye)), 1e-6), 128.0 * shine.y);
      mine += diffuse[i] * facing * color.rgb + specular[i] * shine.x * polish;
    }
    c += strength * mine;
  }
  c = min(c, vec3(1.0)) * base;
  float far = fade > 0.0 ? smoothstep(0.35, 1.0, distance(vWorld, eye) / fade) : 0.0;
  outColor = vec4(mix(c, horizon, far), color.a);
}`;

const DEPTH_VERTEX = `#version 300 es
layout(location=0) in vec3 position; uniform mat4 model, light;
void main() { gl_Position = light * model * vec4(position, 1.0); }`;
const DEPTH_FRAGMENT = `#version 300 es
precision highp float; void main() {}`;
const SKY_VERTEX = `#version 300 es
out vec2 p; void main() { p = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 4.0 - 1.0; gl_Position = vec4(p, 0.9999, 1.0); }`;
const SKY_FRAGMENT = `#version 300 es
precision highp float; in vec2 p; uniform vec3 right, up, forward, top, horizon; out vec4 outColor;
void main() {
  float z = normalize(forward + p.x * right + p.y * up).z;
  outColor = vec4(mix(horizon, top, smoothstep(0.0, 0.7, z)), 1.0);
}`;

function program(vertex, fragment) {
  const p = gl.createProgram();
  for (const [type, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const s = gl.createShader(type);
    gl.shaderSource(s, source); gl.compileShader(s);
    if (!gl.getShaderParameter(s, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(s));
    gl.attachShader(p, s);
  }
  gl.linkProgram(p);
  if (!gl.getProgramParameter(p, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(p));
  const u = {};
  for (let i = 0; i < gl.getProgramParameter(p, gl.ACTIVE_UNIFORMS); i++) {
    const { name } = gl.getActiveUniform(p, i);
    u[name] = gl.getUniformLocation(p, name);
  }
  return { p, u };
}

const main = program(VERTEX, FRAGMENT), depth = program(DEPTH_VERTEX, DEPTH_FRAGMENT), skyPass = program(SKY_VERTEX, SKY_FRAGMENT);
const emptyArray = gl.createVertexArray();

function upload(values) {
  const vao = gl.createVertexArray();
  gl.bindVertexArray(vao);
  gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ARRAY_BUFFER, values instanceof Float32Array ? values : new Float32Array(values), gl.STATIC_DRAW);
  for (const [i, size, offset] of [[0, 3, 0], [1, 3, 12], [2, 2, 24]]) {
    gl.enableVertexAttribArray(i);
    gl.vertexAttribPointer(i, size, gl.FLOAT, false, 32, offset);
  }
  const buffer = gl.getParameter(gl.ARRAY_BUFFER_BINDING);
  gl.bindVertexArray(null);
  return { vao, buffer, count: values.length / 8 };
}

async function decodeMesh(mesh) { // shared vertices to one row of eight numbers for every corner
  const [p, n, uv, index] = await Promise.all([mesh.position, mesh.normal, mesh.coord, mesh.index].map((b) => b && decode(b)));
  const out = new Float32Array(8 * index.length);
  index.forEach((v, i) => {
    for (let k = 0; k < 3; k++) {
      out[8 * i + k] = mesh.centre[k] + mesh.half[k] * p[3 * v + k] / 32767;
      out[8 * i + 3 + k] = n[3 * v + k] / 127;
    }
    if (uv) { out[8 * i + 6] = uv[2 * v]; out[8 * i + 7] = uv[2 * v + 1]; }
  });
  return out;
}

const meshes = (await Promise.all(scene.meshes.map(decodeMesh))).map(upload);
const shapeCache = new Map();
function shapeOf(g) {
  if (g.drawn) return g.drawn;
  if (g.mesh !== undefined) return meshes[g.mesh];
  const key = g.shape + g.size;
  if (!shapeCache.has(key)) shapeCache.set(key, upload(SHAPES[g.shape](g.size)));
  return shapeCache.get(key);
}

// Flexes and skins: triangles (or edges, drawn as prisms) whose vertices move from frame to frame.
const points = await decode(scene.points), npoint = points.length / 3 / Math.max((await decode(scene.time)).length, 1);
const PRISM_SIDES = 6;
const surfaces = await Promise.all(scene.surfaces.map(async (s) => {
  const face = Array.from(await decode(s.face)), edges = s.corners === 2;
  const ncorner = edges ? (face.length / 2) * 6 * PRISM_SIDES : face.length * (s.sheet ? 2 : 1);
  const values = new Float32Array(8 * ncorner), drawn = upload(values);
  return { ...s, face, uv: await decode(s.coordinate), values, drawn, edges, moving: -1, pos: [0, 0, 0], quat: [1, 0, 0, 0] };
}));

function put(s, corner, p, n, u, v) { s.values.set([p[0], p[1], p[2], n[0], n[1], n[2], u, v], 8 * corner); }

function updateSurface(s, at) {
  const p = [];
  for (let i = 0; i < s.count; i++) p.push(blend(points, 3, s.first + i, npoint, at));
  if (s.edges) updateEdges(s, p); else updateTriangles(s, p);
  gl.bindBuffer(gl.ARRAY_BUFFER, s.drawn.buffer);
  gl.bufferData(gl.ARRAY_BUFFER, s.values, gl.DYNAMIC_DRAW);
}

function updateTriangles(s, p) {
  const normal = p.map(() => [0, 0, 0]), flat = [];
  for (let f = 0; f < s.face.length; f += 3) {
    const [a, b, c] = [p[s.face[f]], p[s.face[f + 1]], p[s.face[f + 2]]];
    const n = cross(add(b, a, -1), add(c, a, -1));
    flat.push(unit(n));
    for (let k = 0; k < 3; k++) normal[s.face[f + k]] = add(normal[s.face[f + k]], n);
  }
  const smooth = normal.map(unit);
  (s.sheet ? [1, -1] : [1]).forEach((side, pass) => {
    for (let i = 0; i < s.face.length; i++) {
      const v = s.face[i], n = (s.smooth ? smooth[v] : flat[Math.floor(i / 3)]).map((x) => side * x);
      put(s, pass * s.face.length + i, add(p[v], smooth[v], side * s.thickness), n, s.uv[2 * i], s.uv[2 * i + 1]);
    }
  });
}

function updateEdges(s, p) {
  let corner = 0;
  for (let e = 0; e < s.face.length; e += 2) {
    const a = p[s.face[e]], b = p[s.face[e + 1]], axis = unit(add(b, a, -1));
    const side = unit(cross(axis, Math.abs(axis[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0])), up = cross(axis, side);
    const ring = (k) => {
      const t = 2 * Math.PI * k / PRISM_SIDES;
      return add(side.map((x) => x * Math.cos(t)), up, Math.sin(t));
    };
    for (let k = 0; k < PRISM_SIDES; k++) {
      const n = [ring(k), ring(k + 1)];
      for (const [end, j] of [[a, 0], [a, 1], [b, 1], [a, 0], [b, 1], [b, 0]]) put(s, corner++, add(end, n[j], s.thickness), n[j], 0, 0);
    }
  }
}

const white = new Uint8Array([255, 255, 255]);
const images = scene.images.map((url) => {
  const texture = gl.createTexture(), image = new Image();
  const fill = (source) => {
    gl.bindTexture(gl.TEXTURE_2D, texture);
    if (source) gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGB, gl.RGB, gl.UNSIGNED_BYTE, source);
    else gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGB, 1, 1, 0, gl.RGB, gl.UNSIGNED_BYTE, white);
    gl.generateMipmap(gl.TEXTURE_2D);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.LINEAR_MIPMAP_LINEAR);
    const aniso = gl.getExtension("EXT_texture_filter_anisotropic");
    if (aniso) gl.texParameterf(gl.TEXTURE_2D, aniso.TEXTURE_MAX_ANISOTROPY_EXT, 8);
  };
  fill(null);
  image.onload = () => fill(image);
  image.src = url;
  return texture;
});

// Unit 0 always holds an image: a sampler of colours must not see the shadow map, even where it is not used.
const blank = gl.createTexture();
gl.bindTexture(gl.TEXTURE_2D, blank);
gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGB, 1, 1, 0, gl.RGB, gl.UNSIGNED_BYTE, white);
gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);

const SHADOW = 2048;
const shadowTexture = gl.createTexture();
gl.bindTexture(gl.TEXTURE_2D, shadowTexture);
gl.texStorage2D(gl.TEXTURE_2D, 1, gl.DEPTH_COMPONENT24, SHADOW, SHADOW);
gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_COMPARE_MODE, gl.COMPARE_REF_TO_TEXTURE);
gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.LINEAR);
gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.LINEAR);
const shadowBuffer = gl.createFramebuffer();
gl.bindFramebuffer(gl.FRAMEBUFFER, shadowBuffer);
gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, shadowTexture, 0);
gl.bindFramebuffer(gl.FRAMEBUFFER, null);

// ---- the trajectory ----
const [time, position, rotation, track, contact, ncontact] = await Promise.all(
  ["time", "position", "rotation", "track", "contact", "ncontact"].map((name) => decode(scene[name])));
const nframe = time.length, nmoving = scene.nmoving, ntrack = scene.follow.length;
const t0 = time[0], duration = Math.max(time[nframe - 1] - t0, 0);

function frameAt(t) { // index and fraction of the frames around time t
  let lo = 0, hi = nframe - 1;
  while (hi - lo > 1) { const mid = (lo + hi) >> 1; if (time[mid] <= t) lo = mid; else hi = mid; }
  if (nframe < 2 || t >= time[hi]) return [nframe - 1, 0];
  return [lo, Math.min(Math.max((t - time[lo]) / (time[hi] - time[lo]), 0), 1)];
}

function blend(array, width, index, count, [f, s]) {
  const a = (f * count + index) * width, b = s > 0 ? a + count * width : a, out = [];
  for (let k = 0; k < width; k++) out.push((1 - s) * array[a + k] + s * array[b + k]);
  return out;
}

function blendQuaternion(index, at) {
  const [f, s] = at, a = (f * nmoving + index) * 4, b = s > 0 ? a + 4 * nmoving : a;
  let sign = 0;
  for (let k = 0; k < 4; k++) sign += rotation[a + k] * rotation[b + k];
  sign = sign < 0 ? -1 : 1;
  const q = [0, 1, 2, 3].map((k) => (1 - s) * rotation[a + k] + s * sign * rotation[b + k]);
  const n = Math.hypot(...q) || 1;
  return q.map((x) => x / n);
}

// ---- camera and controls ----
const home = { azimuth: scene.camera.azimuth, elevation: scene.camera.elevation, distance: scene.camera.distance };
let camera = { ...home, center: [...scene.camera.center] };
const state = { playing: nframe > 1, t: t0, speed: 1, follow: scene.defaultFollow, offset: [0, 0, 0] };
const start = new URLSearchParams(location.hash.slice(1));
if (start.get("shadows") === "0") $("shadows").checked = false;
if (start.has("t")) { state.t = t0 + Number(start.get("t")); state.playing = false; }

function basis() {
  const a = camera.azimuth * Math.PI / 180, e = camera.elevation * Math.PI / 180;
  const forward = [Math.cos(e) * Math.cos(a), Math.cos(e) * Math.sin(a), Math.sin(e)];
  const right = [Math.sin(a), -Math.cos(a), 0];
  return { forward, right, up: cross(right, forward) };
}

const pointers = new Map();
let pinch = 0;
canvas.addEventListener("pointerdown", (e) => { pointers.set(e.pointerId, e); canvas.setPointerCapture(e.pointerId); pinch = 0; });
for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, (e) => { pointers.delete(e.pointerId); pinch = 0; });
canvas.addEventListener("pointermove", (e) => {
  const last = pointers.get(e.pointerId);
  if (!last) return;
  const dx = e.clientX - last.clientX, dy = e.clientY - last.clientY;
  pointers.set(e.pointerId, e);
  if (pointers.size === 2) {
    const [p, q] = [...pointers.values()], d = Math.hypot(p.clientX - q.clientX, p.clientY - q.clientY);
    if (pinch) camera.distance *= pinch / d;
    pinch = d;
    pan(dx / 2, dy / 2);
  } else if (e.buttons & 6 || e.shiftKey) pan(dx, dy);
  else {
    camera.azimuth -= 0.35 * dx;
    camera.elevation = Math.min(Math.max(camera.elevation - 0.35 * dy, -89), 89);
  }
});
function pan(dx, dy) {
  const { right, up } = basis(), s = 0.83 * camera.distance / canvas.clientHeight;
  state.offset = add(add(state.offset, right, -dx * s), up, dy * s);
}
canvas.addEventListener("wheel", (e) => { e.preventDefault(); camera.distance *= Math.exp(0.0012 * e.deltaY); }, { passive: false });
canvas.addEventListener("contextmenu", (e) => e.preventDefault());

function setPlaying(on) { state.playing = on; $("play").textContent = on ? "pause" : "play"; }
$("play").onclick = () => setPlaying(!state.playing);
$("scrub").oninput = (e) => { setPlaying(false); state.t = t0 + duration * Number(e.target.value); };
for (const s of [0.05, 0.1, 0.25, 0.5, 1, 2, 4]) $("speed").add(new Option(`${s}x`, s, s === 1, s === 1));
$("speed").onchange = (e) => { state.speed = Number(e.target.value); };
$("follow").add(new Option("nothing", -1));
scene.follow.forEach((name, i) => $("follow").add(new Option(name, i)));
$("follow").value = state.follow;
$("follow").onchange = (e) => { state.follow = Number(e.target.value); state.offset = [0, 0, 0]; };
$("reset").onclick = () => { camera = { ...camera, ...home }; state.offset = [0, 0, 0]; };
const visible = [true, true, true, false, false, false];
visible.forEach((on, i) => {
  if (!scene.geoms.concat(scene.surfaces).some((g) => g.group === i)) return;
  const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: on, title: `group ${i}` });
  box.onchange = () => { visible[i] = box.checked; };
  $("groups").append(box, String(i));
});
if (!scene.geoms.some((g) => g.site)) $("sites").parentElement.style.display = "none";
// ---- cameras of the model: 0 is the free one ----
const cameras = await Promise.all(scene.cameras.map(async (c) => (
  { ...c, position: await decode(c.position), rotation: await decode(c.rotation) })));
["free", ...cameras.map((c) => c.name)].forEach((name, i) => $("camera").add(new Option(name, i)));
if (!cameras.length) $("camera").parentElement.style.display = "none";
state.camera = Math.min(Number(start.get("camera") || 0), cameras.length);
$("camera").value = state.camera;
$("camera").onchange = (e) => chooseCamera(Number(e.target.value));
function chooseCamera(i) {
  state.camera = (i + cameras.length + 1) % (cameras.length + 1);
  $("camera").value = state.camera;
}

// ---- the plot under the time line ----
const plots = await Promise.all(scene.plots.map(async (p) => ({ ...p, values: await decode(p.values) })));
["nothing", ...plots.map((p) => p.name)].forEach((name, i) => $("plotted").add(new Option(name, i - 1)));
if (!plots.length) $("plotted").parentElement.style.display = "none";
state.plot = start.has("plot") ? plots.findIndex((p) => p.name === start.get("plot")) : plots.findIndex((p) => p.name === "reward");
$("plotted").value = state.plot;
$("plotted").onchange = (e) => { state.plot = Number(e.target.value); };
const COLOURS = ["#e0636f", "#4aa3df", "#57b87b", "#b07cd0", "#e0a63a", "#9aa4ae"];
function drawPlot() {
  const area = $("plot"), chosen = plots[state.plot];
  area.hidden = !chosen;
  if (!chosen || nframe < 1) return;
  const ratio = devicePixelRatio || 1, width = area.clientWidth, height = area.clientHeight;
  area.width = width * ratio; area.height = height * ratio;
  const c = area.getContext("2d"), { values, count } = chosen, left = 58, bottom = 16;
  c.scale(ratio, ratio);
  let low = Infinity, high = -Infinity;
  for (const v of values) { low = Math.min(low, v); high = Math.max(high, v); }
  if (high - low < 1e-9) { low -= 0.5; high += 0.5; }
  const x = (t) => left + (width - left - 8) * (duration ? (t - t0) / duration : 0);
  const y = (v) => 6 + (height - bottom - 10) * (high - v) / (high - low);
  c.font = "11px system-ui"; c.fillStyle = "#aab4c0"; c.strokeStyle = "#2d3642"; c.textAlign = "right";
  for (const v of [low, (low + high) / 2, high]) {
    c.fillText(v.toPrecision(3), left - 6, y(v) + 4);
    c.beginPath(); c.moveTo(left, y(v)); c.lineTo(width - 8, y(v)); c.stroke();
  }
  c.textAlign = "center";
  for (let i = 0; i <= 4; i++) c.fillText(`${(t0 + duration * i / 4).toFixed(2)} s`, Math.min(Math.max(x(t0 + duration * i / 4), left), width - 24), height - 3);
  for (let k = 0; k < count; k++) {
    c.strokeStyle = COLOURS[k % COLOURS.length]; c.lineWidth = 1.4; c.beginPath();
    for (let f = 0; f < nframe; f++) c.lineTo(x(time[f]), y(values[f * count + k]));
    c.stroke();
  }
  c.strokeStyle = "#eef"; c.lineWidth = 1; c.beginPath(); c.moveTo(x(state.t), 4); c.lineTo(x(state.t), height - bottom); c.stroke();
}
$("plot").onpointerdown = (e) => {
  setPlaying(false);
  state.t = t0 + duration * Math.min(Math.max((e.offsetX - 58) / (e.target.clientWidth - 66), 0), 1);
};

function toggleGroup(i) { const box = $("groups").querySelector(`[title="group ${i}"]`); if (box) box.click(); }
function changeSpeed(by) {
  const list = $("speed"), next = list.selectedIndex + by;
  if (next >= 0 && next < list.options.length) { list.selectedIndex = next; list.onchange({ target: list }); }
}
$("help").onclick = () => { $("keys").hidden = !$("keys").hidden; };
addEventListener("keydown", (e) => {
  const step = duration / Math.max(nframe - 1, 1);
  if (e.target.tagName === "SELECT" || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === " ") { e.preventDefault(); setPlaying(!state.playing); }
  else if (e.key === "r") $("reset").click();
  else if (e.key === "[") chooseCamera(state.camera - 1);
  else if (e.key === "]") chooseCamera(state.camera + 1);
  else if (e.key === "Escape") chooseCamera(0);
  else if (e.key === "Backspace") state.t = t0;
  else if (e.key === "F1" || e.key === "h") { e.preventDefault(); $("help").click(); }
  else if (e.key === "s" || e.key === "c") $(e.key === "s" ? "shadows" : "contacts").click();
  else if (e.key === "-") changeSpeed(-1);
  else if (e.key === "=" || e.key === "+") changeSpeed(1);
  else if (e.key >= "0" && e.key <= "5") toggleGroup(e.key);
  else if (e.key === "ArrowRight" || e.key === "ArrowLeft") {
    setPlaying(false);
    state.t = Math.min(Math.max(state.t + (e.key === "ArrowRight" ? step : -step), t0), t0 + duration);
  }
});

// ---- drawing ----
function center(at) {
  const follow = state.follow >= 0 ? blend(track, 3, state.follow, ntrack, at) : scene.camera.center;
  return add(follow, state.offset);
}

function geomMatrix(g, at) {
  if (g.moving >= 0) return poseMatrix(blend(position, 3, g.moving, nmoving, at), blendQuaternion(g.moving, at));
  return poseMatrix(g.pos, g.quat);
}

function drawGeom(u, g, matrix, fadeDistance) {
  gl.uniformMatrix4fv(u.model, false, matrix);
  gl.uniform4fv(u.color, g.rgba);
  gl.uniform4f(u.shine, g.specular, g.shininess, g.emission, 0);
  const plane = g.shape === "plane", textured = g.image >= 0;
  gl.uniform1i(u.pattern, textured ? (plane ? 2 : 3) : plane ? 2 : 0);
  if (!textured && plane) gl.bindTexture(gl.TEXTURE_2D, blank);
  if (textured) {
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, images[g.image]);
    gl.uniform2fv(u.repeat, g.repeat);
  }
  gl.uniform1f(u.fade, plane && g.endless ? fadeDistance : 0);
  const shape = shapeOf(g);
  gl.bindVertexArray(shape.vao);
  gl.drawArrays(gl.TRIANGLES, 0, shape.count);
}

function drawContacts(u, at) {
  const f = at[0], shape = shapeOf({ shape: "cylinder", size: [0.012 * scene.camera.distance, 0.0015 * scene.camera.distance] });
  gl.uniform4f(u.color, 0.95, 0.75, 0.15, 1); gl.uniform4f(u.shine, 0, 0, 0.3, 0);
  gl.uniform1i(u.pattern, 0); gl.uniform1f(u.fade, 0);
  gl.bindVertexArray(shape.vao);
  let first = 0;
  for (let i = 0; i < f; i++) first += ncontact[i];
  for (let i = first; i < first + ncontact[f]; i++) {
    const p = contact.subarray(6 * i, 6 * i + 3), n = contact.subarray(6 * i + 3, 6 * i + 6);
    const q = [1 + n[2], -n[1], n[0], 0], norm = Math.hypot(...q);
    gl.uniformMatrix4fv(u.model, false, poseMatrix(p, norm > 1e-6 ? q.map((x) => x / norm) : [0, 1, 0, 0]));
    gl.drawArrays(gl.TRIANGLES, 0, shape.count);
  }
}

function viewpoint(at) {
  const chosen = cameras[state.camera - 1];
  if (!chosen) {
    const { forward, right, up } = basis(), target = center(at);
    return { eye: add(target, forward, -camera.distance), target, forward, right, up, fovy: scene.camera.fovy * Math.PI / 180 };
  }
  const r = blend(chosen.rotation, 9, 0, 1, at), eye = blend(chosen.position, 3, 0, 1, at);
  const right = unit([r[0], r[3], r[6]]), up = unit([r[1], r[4], r[7]]), forward = unit([-r[2], -r[5], -r[8]]);
  return { eye, target: add(eye, forward, scene.camera.distance), forward, right, up, fovy: chosen.fovy * Math.PI / 180 };
}

// The headlight first, then the model's lights where they are at a time; the shader has room for eight.
const MOST_LIGHTS = 8;
const lights = await Promise.all(scene.lights.map(async (l) => (
  { ...l, position: await decode(l.position), direction: await decode(l.direction) })));
if (lights.length + 1 > MOST_LIGHTS) console.warn(`the page draws ${MOST_LIGHTS} lights of ${lights.length + 1}`);
function lightsAt(at) {
  const head = scene.headlight ? [{ kind: "head", ...scene.headlight, pos: [0, 0, 0], dir: [0, 0, -1], attenuation: [1, 0, 0], cone: [-1, 0] }] : [];
  const here = lights.map((l) => {
    const when = l.position.length > 3 ? at : [0, 0];
    return { ...l, pos: blend(l.position, 3, 0, 1, when), dir: unit(blend(l.direction, 3, 0, 1, when)) };
  });
  return head.concat(here).slice(0, MOST_LIGHTS);
}
function lightMatrix(l, target, reach) {
  const up = Math.abs(l.dir[2]) > 0.99 ? [0, 1, 0] : [0, 0, 1];
  if (l.kind === "spot") {
    const angle = Math.min(2 * Math.acos(Math.max(l.cone[0], -1)), 2.8);
    return multiply(perspective(angle, 1, 0.02 * scene.extent, 20 * scene.extent), lookAt(l.pos, add(l.pos, l.dir), up));
  }
  return multiply(orthographic(reach, 0.1, 6 * reach), lookAt(add(target, l.dir, -3 * reach), target, up));
}
function setLights(u, list, caster) {
  gl.uniform1i(u.lightCount, list.length);
  gl.uniform1i(u.shadowLight, caster);
  if (!list.length) return;
  const flat = (name) => list.flatMap((l) => l[name]);
  gl.uniform1iv(u["lightKind[0]"], list.map((l) => ["head", "directional", "spot"].indexOf(l.kind)));
  for (const [name, field] of [["lightPos", "pos"], ["lightDir", "dir"], ["ambient", "ambient"], ["diffuse", "diffuse"],
    ["specular", "specular"], ["attenuation", "attenuation"]]) gl.uniform3fv(u[`${name}[0]`], flat(field));
  gl.uniform2fv(u["cone[0]"], flat("cone"));
}

function draw() {
  const at = frameAt(state.t), { eye, target, forward, right, up, fovy } = viewpoint(at);
  const aspect = canvas.width / canvas.height, fadeDistance = 12 * camera.distance + 4 * scene.extent;
  const view = lookAt(eye, target, up), projection = perspective(fovy, aspect, 0.01 * camera.distance, 2 * fadeDistance);
  const lit = lightsAt(at), caster = lit.findIndex((l) => l.shadow), reach = Math.max(1.2 * camera.distance, 0.5);
  const light = caster < 0 ? multiply(orthographic(1, 0.1, 1), lookAt(eye, target, up)) : lightMatrix(lit[caster], target, reach);
  const shadows = $("shadows").checked && caster >= 0;
  for (const s of surfaces) if (visible[s.group]) updateSurface(s, at);
  const drawn = scene.geoms.concat(surfaces).filter((g) => visible[g.group] && (!g.site || $("sites").checked)).map((g) => [g, geomMatrix(g, at)]);

  gl.enable(gl.DEPTH_TEST);
  if (shadows) {
    gl.bindFramebuffer(gl.FRAMEBUFFER, shadowBuffer);
    gl.viewport(0, 0, SHADOW, SHADOW);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.useProgram(depth.p);
    gl.uniformMatrix4fv(depth.u.light, false, light);
    for (const [g, matrix] of drawn) if (g.shape !== "plane" && !g.site && g.rgba[3] > 0.5) {
      const shape = shapeOf(g);
      gl.uniformMatrix4fv(depth.u.model, false, matrix);
      gl.bindVertexArray(shape.vao);
      gl.drawArrays(gl.TRIANGLES, 0, shape.count);
    }
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }
  gl.viewport(0, 0, canvas.width, canvas.height);
  gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);

  gl.useProgram(skyPass.p);
  gl.depthMask(false);
  const half = Math.tan(fovy / 2);
  gl.uniform3fv(skyPass.u.right, right.map((x) => x * half * aspect));
  gl.uniform3fv(skyPass.u.up, up.map((x) => x * half));
  gl.uniform3fv(skyPass.u.forward, forward);
  gl.uniform3fv(skyPass.u.top, scene.sky[0]);
  gl.uniform3fv(skyPass.u.horizon, scene.sky[1]);
  gl.bindVertexArray(emptyArray);
  gl.drawArrays(gl.TRIANGLES, 0, 3);
  gl.depthMask(true);

  gl.useProgram(main.p);
  const u = main.u;
  gl.uniformMatrix4fv(u.viewProjection, false, multiply(projection, view));
  gl.uniformMatrix4fv(u.light, false, light);
  gl.uniform3fv(u.eye, eye); gl.uniform3fv(u.axis, forward); gl.uniform3fv(u.horizon, scene.sky[1]);
  setLights(u, lit, shadows ? caster : -1);
  gl.uniform1f(u.shadowsOn, shadows ? 1 : 0); gl.uniform1f(u.shadowTexel, 1 / SHADOW);
  gl.uniform1i(u.image, 0); gl.uniform1i(u.shadowMap, 1);
  gl.activeTexture(gl.TEXTURE1); gl.bindTexture(gl.TEXTURE_2D, shadowTexture);
  gl.activeTexture(gl.TEXTURE0); gl.bindTexture(gl.TEXTURE_2D, blank);
  for (const [g, matrix] of drawn) if (g.rgba[3] >= 1) drawGeom(u, g, matrix, fadeDistance);
  if ($("contacts").checked) drawContacts(u, at);
  gl.enable(gl.BLEND); gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA); gl.depthMask(false);
  const far = ([, m]) => -dot(forward, [m[12], m[13], m[14]]);
  for (const [g, matrix] of drawn.filter(([g]) => g.rgba[3] < 1 && g.rgba[3] > 0).sort((a, b) => far(a) - far(b))) drawGeom(u, g, matrix, fadeDistance);
  gl.depthMask(true); gl.disable(gl.BLEND);
}

let last = null;
function tick(now) {
  const scale = Math.min(devicePixelRatio || 1, 2);
  canvas.width = Math.max(Math.round(canvas.clientWidth * scale), 1);
  canvas.height = Math.max(Math.round(canvas.clientHeight * scale), 1);
  if (state.playing && last !== null) {
    state.t += state.speed * Math.min((now - last) / 1000, 0.1);
    if (state.t > t0 + duration) state.t = t0;
  }
  last = now;
  $("scrub").value = duration ? (state.t - t0) / duration : 0;
  $("clock").textContent = `${state.t.toFixed(2)} / ${(t0 + duration).toFixed(2)} s`;
  draw();
  drawPlot();
  requestAnimationFrame(tick);
}
setPlaying(state.playing);
requestAnimationFrame(tick);
